"""The calls of what a connection and a table hand out: tags, branches, views and jobs."""

from .connection import refresh
from .ground import rows_of


def tagged(call):
    """Makes a call on the tags of a table whose first version is tagged."""

    def whole(c):
        tags = yield c.t.tags
        yield tags.create("first", 1)
        return (yield from call(c, tags))

    return whole


def tag_list(c, tags):
    return {name: each["version"] for name, each in (yield tags.list()).items()}


def tag_get_version(c, tags):
    return (yield tags.get_version("first"))


def tag_update(c, tags):
    yield c.t.add(rows_of([4]))
    yield tags.update("first", 2)
    return (yield tags.get_version("first"))


def tag_delete(c, tags):
    yield tags.delete("first")
    return (yield tags.list())


TAGS = {
    "create": tagged(tag_list),
    "delete": tagged(tag_delete),
    "get_version": tagged(tag_get_version),
    "list": tagged(tag_list),
    "update": tagged(tag_update),
}


def branched(call):
    """Makes a call on the branches of a table that has a branch with a column more."""

    def whole(c):
        branches = yield c.t.branches
        trial = yield branches.create("trial")
        yield trial.add_columns({"twice": "id * 2"})
        return (yield from call(c, branches))

    return whole


def branch_checkout(c, branches):
    trial = yield branches.checkout("trial")
    return (yield trial.head(9))


def branch_list(c, branches):
    return list((yield branches.list()))


def branch_delete(c, branches):
    yield branches.delete("trial")
    return (yield branches.list())


def branch_diff(c, branches):
    return (yield branches.diff("trial"))


def branch_cherry_pick(c, branches):
    return (yield branches.cherry_pick("trial"))


BRANCHES = {
    "checkout": branched(branch_checkout),
    "cherry_pick": branched(branch_cherry_pick),
    "create": branched(branch_list),
    "delete": branched(branch_delete),
    "diff": branched(branch_diff),
    "list": branched(branch_list),
}


def viewed(call):
    """Makes a call on a view of the table without its last row."""

    def whole(c):
        view = yield c.db.create_materialized_view("mv", "t", select=["id"], where="id > 1")
        return (yield from call(c, view))

    return whole


def view_definition(c, view):
    definition = view.definition if not callable(view.definition) else (yield view.definition())
    return definition.query


def view_name(c, view):
    return view.name
    yield


def view_table(c, view):
    return (yield view.table.head(9))


def view_refresh(c, view):
    yield c.t.add(rows_of([4]))
    yield view.refresh()
    yield view.table.checkout_latest()
    return (yield view.table.head(9))


def view_refresh_async(c, view):
    yield c.t.add(rows_of([4]))
    yield (yield view.refresh_async()).wait()
    yield view.table.checkout_latest()
    return (yield view.table.head(9))


MATERIALIZED_VIEW = {
    "definition": viewed(view_definition),
    "name": viewed(view_name),
    "refresh": viewed(view_refresh),
    "refresh_async": viewed(view_refresh_async),
    "table": viewed(view_table),
}


def opened(call):
    """Makes a call on a job that has ended."""

    def whole(c):
        job = yield from refresh(c)
        if job.id is not None:
            job = yield c.db.open_job(job.id)
        return (yield from call(c, job))

    return whole


def job_call(name):
    def call(c, job):
        return (yield getattr(job, name)())

    return opened(call)


def job_wait(c):
    job = yield from refresh(c)
    done = yield job.wait()
    return [done.rows_assigned, done.rows_failed, done.published_version]


def job_field(name):
    def call(c, job):
        yield job.refresh()
        return getattr(job, name)

    return opened(call)


JOB = {
    "cancel": job_call("cancel"),
    "creation_ms": job_field("creation_ms"),
    "events": job_call("events"),
    "failure": job_field("failure"),
    "id": job_field("id"),
    "job_type": job_field("job_type"),
    "refresh": job_call("refresh"),
    "result": job_field("result"),
    "spec": job_field("spec"),
    "state": job_field("state"),
    "status": job_call("status"),
    "wait": job_wait,
}
