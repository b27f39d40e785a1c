"""The Rust REST adapter of the pylance wheel before another REST catalog: peer.py URI; prints its port."""

import os
import sys
import time


def serve(uri: str) -> None:
    # Warnings of the engine cost it time; the gateway leaves them out, too.
    os.environ["LANCE_LOG"] = "error"
    from lance.namespace import RestAdapter

    with RestAdapter("rest", {"uri": uri}, port=0) as adapter:
        print(adapter.port, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    serve(sys.argv[1])
