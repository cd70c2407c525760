"""NCCL on a switchless ring: which libraries are known, and what each rank's process must tell it."""
