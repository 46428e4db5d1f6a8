"""What other programs read: traces (Trace Event JSON, Parquet, CSV, Chakra) and runs (TensorBoard, MLflow)."""
