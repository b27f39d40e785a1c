// Parts of undici: its entry loads four times the modules that a pool of connections needs (docs/adr/0003).

declare module "undici/lib/dispatcher/client.js" {
  import { Client } from "undici";
  export default Client;
}

declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export default Pool;
}

declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export default buildConnector;
}

declare module "undici/lib/core/errors.js" {
  import { errors } from "undici";
  export default errors;
}
