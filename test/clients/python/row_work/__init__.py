"""Random updates, merges, deletions and reads, with the rows that they have to leave."""
