"""What a table was: versions, tags and branches."""

from beside import fruit


def t(db):
    return db.open_table("t")


def time_travel(both):
    """Reads, restores and lists versions."""
    both.same("create_table", lambda db: db.create_table("t", fruit(3)).version)
    both.same("add", lambda db: t(db).add(fruit(2, 3)).version)
    both.same("delete", lambda db: t(db).delete("id = 0"))

    def at(db, version):
        table = t(db)
        table.checkout(version)
        return [table.version, table.search().to_arrow(), table.search([1.0, 0.0]).limit(1).to_arrow()]

    for version in (1, 2, 3):
        both.same(f"version {version}", lambda db, v=version: at(db, v))

    def write_in_the_past(db):
        table = t(db)
        table.checkout(1)
        table.add(fruit(1, 9))

    both.same("write in the past", write_in_the_past)

    def forth_and_back(db):
        table = t(db)
        table.checkout(1)
        table.checkout_latest()
        return [table.version, table.count_rows()]

    both.same("checkout_latest", forth_and_back)

    def restore(db):
        table = t(db)
        table.checkout(2)
        table.restore()
        return [table.version, table.count_rows()]

    both.same("restore what is checked out", restore)
    both.same("restore a version", lambda db: [t(db).restore(1), t(db).version, t(db).count_rows()])
    both.same("restore a missing version", lambda db: t(db).restore(99))
    both.same("versions", lambda db: [each["version"] for each in t(db).list_versions()])
    both.same("metadata of versions", lambda db: [sorted(each["metadata"]) for each in t(db).list_versions()])
    both.same("open a version", lambda db: db.open_table("t", version=2).count_rows())


def tags(both):
    """Names versions."""
    both.same("create_table", lambda db: db.create_table("t", fruit(3)).version)
    both.same("add", lambda db: t(db).add(fruit(2, 3)).version)
    versions = lambda tags: {name: tag["version"] for name, tag in tags.list().items()}  # noqa: E731
    both.same("no tags", lambda db: t(db).tags.list())
    both.same("create", lambda db: [t(db).tags.create("one", 1), t(db).tags.create("two", 2), versions(t(db).tags)])
    both.same("get_version", lambda db: [t(db).tags.get_version("one"), t(db).tags.get_version("two")])

    def at(db, tag):
        table = t(db)
        table.checkout(tag)
        return [table.version, table.count_rows()]

    both.same("checkout", lambda db: at(db, "one"))
    both.same("update", lambda db: [t(db).tags.update("one", 2), at(db, "one")])
    both.same("restore a tag", lambda db: [t(db).restore("two"), t(db).version])
    both.same("delete", lambda db: [t(db).tags.delete("one"), versions(t(db).tags)])
    both.same("checkout of a deleted tag", lambda db: at(db, "one"))


def branches(both):
    """Writes beside the main branch."""
    both.same("create_table", lambda db: db.create_table("t", fruit(3)).version)
    both.same("no branches", lambda db: t(db).branches.list())

    def grow(db):
        branch = t(db).branches.create("trial")
        branch.add(fruit(2, 10))
        branch.add_columns({"twice": "id * 2"})
        branch.update(where="id = 10", values={"text": "new"})
        branch.delete("id = 0")
        return [branch.current_branch(), branch.count_rows(), t(db).count_rows(), t(db).current_branch()]

    both.same("create", grow)
    both.same("list", lambda db: [sorted(each) for each in t(db).branches.list().values()])
    branch = lambda db: t(db).branches.checkout("trial")  # noqa: E731
    both.same("rows", lambda db: branch(db).search().to_arrow().sort_by("id"))
    both.same("search", lambda db: branch(db).search([10.0, 0.0]).limit(2).to_arrow())
    both.same("version", lambda db: branch(db).version)
    both.same("from another branch", lambda db: branch(db).branches.create("second").count_rows())
    both.same("from a version", lambda db: t(db).branches.create("first", from_version=1).count_rows())
    both.same("a tag of a branch", lambda db: [branch(db).tags.create("kept", 2), t(db).tags.list()["kept"]["version"]])
    both.same("create again", lambda db: t(db).branches.create("trial"))
    both.same("a bad name", lambda db: t(db).branches.create("a b"))
    both.same("delete", lambda db: [t(db).branches.delete("first"), sorted(t(db).branches.list())])
    both.same("delete main", lambda db: t(db).branches.delete("main"))
    both.same("merge into a branch", lambda db: branch(db).merge_insert("id").when_not_matched_insert_all().execute(branch(db).search().to_arrow()))
    both.same("index of a branch", lambda db: [branch(db).create_scalar_index("id"), [i.name for i in branch(db).list_indices()], t(db).list_indices()])
    both.same("open a branch", lambda db: db.open_table("t", branch="trial").count_rows())


KINDS = [time_travel, tags, branches]
