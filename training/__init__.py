"""One file per training method; `sft` is the one to read first."""
