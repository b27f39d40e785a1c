"""Writes the files of the config map in a manifest into a folder: `python config_map.py MANIFEST FOLDER`."""

import sys
from pathlib import Path

import yaml

for resource in yaml.safe_load_all(Path(sys.argv[1]).read_text()):
    if resource["kind"] == "ConfigMap":
        for name, text in resource["data"].items():
            (Path(sys.argv[2]) / name).write_text(text)
