"""Checks manifests against custom resource definitions: `python custom_resources.py CRDS MANIFEST…`.

CRDS is a folder with definitions. Resources of groups that it does not define are left to kubernetes-validate. Unknown fields are mistakes.
"""

import sys
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator


def strict(schema):
    """Returns a schema in which objects have no other fields than those that it names, as `kubectl apply` sees it."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(each) for name, each in schema.items()}
    if found.pop("x-kubernetes-int-or-string", False):
        return {"type": ["integer", "string"]}
    is_open = found.get("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(found.get("properties"), dict) and "additionalProperties" not in found and not is_open:
        found["additionalProperties"] = False
    return found


def validators(folder):
    """Returns the validators of the definitions in a folder, by API version and kind."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        for version in spec["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            # The API server checks it by a schema of its own, as it does `status`.
            schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            found[key] = Draft202012Validator(schema)
    return found


def main(folder, *manifests):
    known = validators(Path(folder))
    groups = {version.split("/")[0] for version, _ in known}
    count = 0
    mistakes = []
    for path in manifests:
        for resource in yaml.safe_load_all(Path(path).read_text()):
            key = (resource["apiVersion"], resource["kind"])
            if key[0].split("/")[0] not in groups:
                continue
            count += 1
            if key not in known:
                mistakes.append(f"{path}: no definition of {key[1]} in {key[0]}")
                continue
            for error in known[key].iter_errors(resource):
                mistakes.append(f"{path}: {resource['kind']}: {error.json_path}: {error.message[:200]}")
    if count == 0:
        mistakes.append("no manifest has a resource of these definitions")
    print("\n".join(mistakes), end="\n" if mistakes else "", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
