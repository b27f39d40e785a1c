"""A case: the same work by pylance and by the gateway."""

import lance

from .gateway import ABSENT, Refused
from .texts import BLANKS, NUMBERS, Texts

# What a call must end with where pylance cannot say it.
UNSUPPORTED = "unsupported"
REFUSED = "refused"


class Cases(Texts):
    """Draws cases for a table that pylance has at `path` and the gateway as `remote`.

    Each returns a name, the outcome by pylance, and the work by the gateway. An outcome is a value, or REFUSED or UNSUPPORTED.
    """

    def __init__(self, rng, path, remote):
        super().__init__(rng)
        self.path = path
        self.remote = remote
        first = self.rows(rng.randint(1, 8))
        self.local = lance.write_dataset(first, path)
        # Versions with the same rows: the two count them differently where a change finds no row.
        self.versions = [(self.local.version, remote.create(first)["version"])]
        self._compared = 1

    def case(self):
        kinds = [self.update, self.update, self.update, self.merge, self.merge, self.delete, self.count, self.count, self.query, self.query]
        return self.rng.choice(kinds)()

    def update(self):
        """Updates columns, whose expressions read themselves, columns that stay and, now and then, other updated columns."""
        rng = self.rng
        updated = rng.sample(["id", *NUMBERS, "s", "Mixed", "f", "flag"], rng.randint(1, 4))
        stay = [name for name in ["id", *NUMBERS, "s", "Mixed", "point"] if name not in updated]
        values = {name: self.value(name, [*stay, name]) for name in updated}
        predicate = self.maybe_blank()
        others = [name for name in updated if name not in ("f", "flag")]
        crossed = len(updated) > 1 and others and rng.random() < 0.3
        if crossed and predicate not in BLANKS:
            predicate = None
        if crossed:
            read = rng.choice(others)
            reader = rng.choice([name for name in updated if name != read])
            values[reader] = self._reading(reader, self.name(read), read)
        fields = {"updates": [list(pair) for pair in values.items()], "predicate": ABSENT if predicate is None else predicate}

        def remote():
            return self._changed(self.remote.call("update", **fields))["updated_rows"]

        if crossed:
            # Pylance would compute them from old or new values, by chance.
            return f"update {fields}", REFUSED if predicate in BLANKS else UNSUPPORTED, remote
        return f"update {fields}", self._done(lambda: self.local.update(values, where=predicate)["num_rows_updated"]), remote

    def _reading(self, column, name, read):
        is_number = read in ("id", *NUMBERS)
        number = name if is_number else f"CAST(length({name}) AS BIGINT)"
        if column in ("id", *NUMBERS):
            return f"{number} + 1"
        if column in ("s", "Mixed"):
            return f"CAST({name} AS STRING)"
        return f"CAST({number} AS DOUBLE)" if column == "f" else f"{number} > 1"

    def delete(self):
        predicate = self.rng.choice([f"({self.condition()}) AND id = {self.rng.randint(0, 6)}", self.rng.choice(BLANKS)])

        def local():
            before = self.local.count_rows()
            self.local.delete(predicate)
            return before - self.local.count_rows()

        def remote():
            return self._changed(self.remote.call("delete", predicate=predicate))["num_deleted_rows"]

        return f"delete {predicate!r}", self._done(local), remote

    def merge(self):
        rng = self.rng
        rows = self.rows(rng.randint(1, 3))
        on = rng.choice([["id"], ["id"], ["id"], ["id", "a"], ["s"], ["Mixed", "id"]])
        update = rng.choice([None, "", "all", "all"])
        match = rng.choice([None, None, "source.a > target.a", "target.s = source.s", "source.id IS NOT NULL", "target.nope = 1", rng.choice(BLANKS)])
        insert = rng.random() < 0.6
        remove = rng.random() < 0.25
        gone = rng.choice([f"({self.condition()}) AND b = {rng.randint(-3, 3)}", rng.choice(BLANKS)])
        if not (update == "all" or insert or remove):
            insert = True
        parameters = {"on": on}
        if update == "all":
            parameters |= {"when_matched_update_all": "true", "when_matched_update_all_filt": match}
        if insert:
            parameters |= {"when_not_matched_insert_all": "true"}
        if remove:
            parameters |= {"when_not_matched_by_source_delete": "true", "when_not_matched_by_source_delete_filt": gone}

        def local():
            merge = self.local.merge_insert(on)
            if update == "all":
                merge = merge.when_matched_update_all(match)
            if insert:
                merge = merge.when_not_matched_insert_all()
            if remove:
                merge = merge.when_not_matched_by_source_delete(gone)
            done = merge.execute(rows)
            return [done[f"num_{kind}_rows"] for kind in ("inserted", "updated", "deleted")]

        def remote():
            done = self._changed(self.remote.merge(rows, **parameters))
            return [done.get(f"num_{kind}_rows", 0) for kind in ("inserted", "updated", "deleted")]

        return f"merge {rows.to_pylist()} {parameters}", self._done(local), remote

    def count(self):
        predicate, (version, there), branch = self.maybe_blank(), self._version(), self._branch()
        fields = {"predicate": ABSENT if predicate is None else predicate, "version": there, "branch": branch}
        local = REFUSED if branch in BLANKS else self._done(lambda: self._at(version).count_rows(predicate))
        return f"count {fields}", local, lambda: self.remote.call("count_rows", **fields)

    def query(self):
        rng = self.rng
        predicate, (version, there), branch = self.maybe_blank(), self._version(), self._branch()
        k, offset = rng.choice([ABSENT, None, 0, 1, 3, 100]), rng.choice([ABSENT, None, 0, 1, 5])
        columns = rng.choice([None, ["id"], ["s", "Mixed", "id"]])
        fields = {"filter": ABSENT if predicate is None else predicate, "version": there, "branch": branch, "k": k, "offset": offset}
        named = ABSENT if columns is None else {"column_names": columns}
        # Rows that a change has moved have an order of their own in each engine.
        whole = k in (ABSENT, None, 0, 100) and offset in (ABSENT, None, 0)

        def result(table):
            return [table.schema.names, sorted(map(repr, table.to_pylist())) if whole else len(table)]

        def local():
            given = {name: value for name, value in (("limit", k), ("offset", offset)) if value not in (ABSENT, None)}
            return result(self._at(version).to_table(filter=predicate, columns=columns, **given))

        def remote():
            return result(self.remote.query(vector={}, columns=named, **fields))

        return f"query {fields} {columns}", REFUSED if branch in BLANKS else self._done(local), remote

    def _version(self):
        """Returns a version of pylance's table, and of the gateway's."""
        same = [(version, version) for version in (ABSENT, ABSENT, ABSENT, None, 0, 9999)]
        return self.rng.choice([*same, self.rng.choice(self.versions)])

    def _branch(self):
        return self.rng.choice([ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, None, "main", self.rng.choice(BLANKS)])

    def _changed(self, answer):
        self.versions.append((self.local.version, answer["version"]))
        return answer

    def _at(self, version):
        return self.local if version in (ABSENT, None) else self.local.checkout_version(version)

    def _done(self, work):
        try:
            return work()
        except BaseException as error:
            # A panic of the engine is no Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return REFUSED

    def outcome(self, work):
        """Returns how the gateway's work ends."""
        try:
            return work()
        except Refused as refused:
            if refused.status >= 500:
                raise
            return UNSUPPORTED if refused.status == 406 else REFUSED

    def has_changed(self):
        """Says whether the gateway has changed the table since the last call."""
        known, self._compared = self._compared, len(self.versions)
        return known != self._compared

    def rows_here(self):
        return sorted(map(repr, self.local.to_table().to_pylist()))

    def rows_there(self):
        return sorted(map(repr, self.remote.rows().to_pylist()))

