// Parts of undici by their files: its entry loads four times the modules that a pool of connections needs (docs/adr/0003).
import buildConnector from "undici/lib/core/connect.js";
import errors from "undici/lib/core/errors.js";
import Client from "undici/lib/dispatcher/client.js";
import Pool from "undici/lib/dispatcher/pool.js";

export { buildConnector, Client, errors, Pool };
