"""Logs of tables, and what LanceDB's data loading asks of them."""

from beside import fruit
from lancedb.permutation import Permutation, permutation_builder


def logs(both):
    """Asks for the log of a table without one."""
    both.same("create_table", lambda db: db.create_table("t", fruit(10)).count_rows())
    table = lambda db: db.open_table("t")  # noqa: E731

    both.same("get_lsm_write_spec", lambda db: table(db).get_lsm_write_spec())
    both.refused("unset_lsm_write_spec", lambda db: table(db).unset_lsm_write_spec(), "no LSM write spec is set on this table")
    both.refused("get_lsm_stats", lambda db: table(db).get_lsm_stats(), "not supported")
    both.refused("flush_lsm", lambda db: table(db).flush_lsm(), "not supported")

    NO_LOG = "use_lsm(true) was set but the table has no MemWAL write spec"
    both.refused("scan with use_lsm", lambda db: table(db).search().use_lsm(True).to_list(), NO_LOG)
    both.refused("search with use_lsm", lambda db: table(db).search([1.0, 0.0]).use_lsm(True).to_list(), NO_LOG)
    both.same("scan without use_lsm", lambda db: table(db).search().use_lsm(False).to_arrow())
    merge = lambda db: table(db).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()  # noqa: E731
    both.refused("merge with use_lsm", lambda db: merge(db).use_lsm(True).execute(fruit(3)), NO_LOG)
    both.same("merge without use_lsm", lambda db: merge(db).use_lsm(False).execute(fruit(3, 8)))
    both.same("merge", lambda db: merge(db).execute(fruit(4, 9)))

    def loaded(db):
        order = permutation_builder(table(db)).split_random(ratios=[0.5, 0.5], seed=7).shuffle(seed=3).execute()
        halves = [Permutation.from_tables(table(db), order, split) for split in (0, 1)]
        return [row["id"] for half in halves for batch in half.iter(4, skip_last_batch=False) for row in batch]

    both.same("permutation_builder", lambda db: sorted(loaded(db)))


KINDS = [logs]
