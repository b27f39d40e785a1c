"""The indices of a manifest tell what is in it. Arguments: the base directory, and ids that must not be found."""

import sys

import lance

base, *gone = sys.argv[1:]
manifest = lance.dataset(f"{base}/__manifest")
names = sorted(index.name for index in manifest.describe_indices())
assert names == ["base_objects_label_list", "object_id_btree", "object_type_bitmap"], names


def found(**filter):
    [(column, value)] = filter.items()
    scanner = manifest.scanner(columns=["object_id"], filter=f"{column} = '{value}'")
    assert "ScalarIndexQuery" in scanner.explain_plan(), scanner.explain_plan()
    return sorted(scanner.to_table()["object_id"].to_pylist())


rows = manifest.to_table(columns=["object_id", "object_type"], use_scalar_index=False).to_pylist()
for row in rows:
    assert found(object_id=row["object_id"]) == [row["object_id"]], row
for id in gone:
    assert found(object_id=id) == [], id
for kind in {row["object_type"] for row in rows}:
    assert found(object_type=kind) == sorted(row["object_id"] for row in rows if row["object_type"] == kind), kind
