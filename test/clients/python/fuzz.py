"""Requests generated from the public OpenAPI document, good and bad ones, against a running gateway.

    fuzz.py URI DOCUMENT ERRORS EXAMPLES

DOCUMENT is the OpenAPI file, ERRORS the error table as JSON: a list of `{code, httpStatus}`. No request may get a 5xx,
an error that is not a row of the table, or a success that the document does not describe. The choices are the same in
every run: EXAMPLES good and half as many bad requests of each operation. Prints `{"requests", "operations", "successes"}` as JSON.
"""

import json
import sys

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from support import people, stream

uri, document, errors, examples = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
ARROW = "application/vnd.apache.arrow.stream"
NAMES = {
    "column": ["id", "name", "vector", "missing"],
    "path": ["id", "name", "vector", "missing"],
    "predicate": ["id > 1", "name = 'p1' OR id IS NULL", "id >", "missing = 1"],
    "filter": ["id > 1", "id > 1 AND", "length(name) = 2"],
    "expression": ["id + 1", "upper(name)", "nothing(", "missing"],
    "vector_column": ["vector", "name"],
    "version": [1, 2, 99],
    "from_version": [1, 99],
    "tag": ["first", "other"],
    "branch": ["main", "side", "missing"],
    "from_branch": ["main", "side"],
    "index_type": ["BTREE", "BITMAP", "FTS", "IVF_FLAT", "IVF_PQ", "LABEL_LIST", "NOTHING"],
    "distance_type": ["l2", "cosine", "dot", "none"],
    "vector": [{}, {"single_vector": [1.0, 0.0]}, {"multi_vector": [[1.0, 0.0]]}, {"single_vector": [1.0]}],
    "k": [0, 1, 3],
    "columns": [["id"], ["name", "missing"], {"column_names": ["id"]}, {"column_aliases": {"n": "name"}}],
    "new_columns": [[{"name": "twice", "expression": "id * 2"}], [{"name": "id", "expression": "1"}]],
    "updates": [[["name", "'x'"]], [["missing", "1"]], [["id", "id + "]]],
    "on": ["id", "name", "missing"],
    "mode": ["Create", "ExistOk", "Overwrite", "append", "Skip", "Fail", "NOTHING"],
    "behavior": ["Restrict", "Cascade", "NOTHING"],
    "naming_scheme": ["V1", "V2"],
    "limit": [1, 2, 0, -1],
    "when_matched_update_all": [True, False],
    "when_not_matched_insert_all": [True, False],
    "ranges": [[{"start_version": 1, "end_version": 2}], [{"start_version": 0, "end_version": -1}]],
    "alterations": [[{"path": "name", "rename": "label"}], [{"path": "id", "data_type": "string"}]],
    "new_table_name": ["renamed", "declared"],
    "new_namespace_id": [["fuzz", "inner"], ["missing"]],
    "location": ["nowhere", "../outside"],
    "operations": [[{"declare_table": {"id": ["fuzz", "new"]}}], [{"deregister_table": {"id": ["missing"]}}]],
    "entries": [[{"id": ["fuzz", "people"], "version": 2, "manifest_path": "nowhere"}]],
    "actions": [[{"setPropertyAction": {"key": "a", "value": "b"}}], [{"unsetPropertyAction": {"key": "a"}}]],
    "query": [{"k": 1, "vector": {"single_vector": [1.0, 0.0]}}, {"k": 1, "vector": {}, "filter": "id >"}],
    "kind": ["query", "udtf"],
    "source_query": ["SELECT id, name FROM fuzz.people WHERE id > 1", "SELECT"],
}
# Names that mean something else in one operation.
OWN_NAMES = {
    "UpdateFieldMetadata": {"updates": [[{"path": "name", "metadata": {"a": "b", "c": None}}]]},
    "CreateTable": {"properties": ['{"a": "b"}', "{"], "storage_options": ["{}", "[]"]},
    "CreateTableBranch": {"name": ["side", "other"]},
    "DeleteTableBranch": {"name": ["side", "other"]},
    "CreateTableTag": {"branch": ["main"]},
    "AlterTableDropColumns": {"columns": [["name"], ["missing"]]},
    "QueryTable": {"columns": [{"column_names": ["id"]}, {"column_aliases": {"n": "name"}}, {}]},
    "AnalyzeTableQueryPlan": {"columns": [{"column_names": ["id"]}]},
}
UPLOADS = [
    stream(people()),
    stream(people(0)),
    stream(people(2, 10), compression="zstd"),
    stream(people())[:-100],
    b"",
]
# The part of the path before the id, and ids; those that come first are aimed at more often.
IDS = {
    "namespace": ["fuzz", "fuzz$inner", "fuzz$fresh", "$", "missing"],
    "table": ["fuzz$people", "fuzz$people", "fuzz$people", "fuzz$declared", "fuzz$fresh", "fuzz$missing"],
    "materialized_view": ["fuzz$view", "fuzz$people", "fuzz$missing"],
    "transaction": ["fuzz$people$1", "fuzz$people$99", "fuzz$people"],
}
# How a generated request is changed before it is sent.
AS_IT_IS, SOME_KNOWN, ALL_KNOWN, ONLY_KNOWN = range(4)

schemathesis.openapi.media_type(ARROW, st.sampled_from(UPLOADS) | st.binary(max_size=64))


@schemathesis.serializer(ARROW)
def send_bytes(_context, value):
    return value


session = requests.Session()
counts = {"requests": 0, "operations": 0, "successes": 0}
problems: dict[str, str] = {}


def prepare() -> None:
    """Makes the objects that generated requests aim at; they may have dropped or changed them."""
    session.post(f"{uri}/v1/namespace/fuzz/create", json={"mode": "exist_ok"})
    session.post(f"{uri}/v1/namespace/fuzz$inner/create", json={"mode": "exist_ok"})
    created = session.post(
        f"{uri}/v1/table/fuzz$people/create?mode=overwrite", data=stream(people()), headers={"content-type": ARROW}
    )
    assert created.status_code == 200, created.text
    session.post(f"{uri}/v1/table/fuzz$declared/declare", json={})
    session.post(f"{uri}/v1/table/fuzz$people/tags/create", json={"tag": "first", "version": 1})
    session.post(f"{uri}/v1/table/fuzz$people/branches/create", json={"name": "side"})
    session.post(f"{uri}/v1/table/fuzz$people/create_index", json={"column": "id", "index_type": "BTREE"})


def aim(case, data) -> None:
    """Points a request at what exists, most of the time: random names alone would only ever be missing."""
    change = data.draw(st.sampled_from([AS_IT_IS, SOME_KNOWN, ALL_KNOWN, ONLY_KNOWN, ONLY_KNOWN]))
    if change == AS_IT_IS:
        return
    path = case.path_parameters or {}
    parts = [part for part in (case.body, case.query) if isinstance(part, dict)]
    if "id" in path:
        path["id"] = data.draw(st.sampled_from(IDS[case.path.split("/")[2]]))
    if "index_name" in path:
        path["index_name"] = data.draw(st.sampled_from(["id_idx", "missing"]))
    names = NAMES | OWN_NAMES.get(case.operation.definition.raw["operationId"], {})
    for part in parts:
        # What says the same as the path seldom does when both are random.
        for name in {"id", "delimiter", "index_name"} & part.keys():
            del part[name]
        for name in sorted(part):
            if name in names and (change > SOME_KNOWN or data.draw(st.booleans())):
                part[name] = data.draw(st.sampled_from(names[name]))
        # Optional fields seldom all hold at once: without most of them, calls also succeed.
        if change == ONLY_KNOWN:
            for name in sorted(part.keys() - set(required(case))):
                if name not in names or data.draw(st.integers(0, 3)):
                    del part[name]


def required(case) -> list[str]:
    """The fields that a request has to have."""
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {}).get("$ref", "").split("/")[-1]
    in_body = case.operation.schema.raw_schema["components"]["schemas"].get(schema, {}).get("required", [])
    # Without one of the flags a merge has nothing to do.
    return ["on", "when_matched_update_all", *in_body]


def check(case, answer) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    counts["requests"] += 1
    if answer.status_code < 300:
        counts["successes"] += 1
        described = [str(status) for status in case.operation.definition.raw["responses"]]
        if str(answer.status_code) not in described:
            return f"status {answer.status_code} is not described"
        try:
            case.validate_response(answer, checks=SUCCESS_CHECKS)
        except Exception as error:  # Its class depends on the number of checks that failed.
            return f"not as described: {error}"
        return None
    media_type = answer.headers.get("content-type", [])
    if media_type != ["application/json"]:
        return f"error of type {media_type}"
    body = answer.json()
    row = {"code": body.get("code"), "httpStatus": answer.status_code}
    if row not in errors or not isinstance(body.get("error"), str):
        return f"error outside the table: {answer.status_code} {answer.text}"
    return f"server error: {answer.text}" if answer.status_code >= 500 else None


SUCCESS_CHECKS = [content_type_conformance, response_schema_conformance]


def fuzz(operation, mode: GenerationMode, count: int) -> None:
    @settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def send(case, data) -> None:
        aim(case, data)
        answer = case.call(base_url=uri, session=session, timeout=60)
        problem = check(case, answer)
        if problem:
            key = f"{operation.label}: {problem[:60]}"
            sent = f"{case.formatted_path} {case.query} {repr(case.body)[:1000]}"
            problems.setdefault(key, f"{operation.label}: {problem[:1000]}\n  {sent}")

    prepare()
    send()


def main() -> None:
    for result in schemathesis.openapi.from_path(document).get_all_operations():
        fuzz(result.ok(), GenerationMode.POSITIVE, examples)
        fuzz(result.ok(), GenerationMode.NEGATIVE, examples // 2)
        counts["operations"] += 1
    print(json.dumps(counts))
    if problems:
        sys.exit("\n".join(problems.values()))


main()
