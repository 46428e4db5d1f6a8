"""The recorder inside a rank."""
