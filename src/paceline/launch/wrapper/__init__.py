"""The rank wrapper: between a launcher's program (mpiexec, torchrun, srun, Ray) and a rank."""
