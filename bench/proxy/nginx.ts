import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/free-port.ts";
import { type ServerProcess, startProcess } from "../support/process.ts";

/** Starts nginx as a plain proxy with one worker in front of an upstream; undefined where it is not installed. */
export async function startNginx(upstreamPort: number): Promise<ServerProcess | undefined> {
  if (spawnSync("nginx", ["-v"]).error !== undefined) return undefined;
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-bench-nginx-"));
  const file = join(folder, "nginx.conf");
  writeFileSync(file, configuration(port, upstreamPort, folder));
  // nginx does not report that it listens, so a shell prints the port once the socket accepts connections.
  const wait = `until (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.05; done; echo ${port}`;
  const script = `(${wait}) & exec nginx -p ${folder} -c ${file} -e stderr`;
  return startProcess(["bash", "-c", script], /^(\d+)$/);
}

function configuration(port: number, upstreamPort: number, folder: string): string {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `
daemon off;
master_process off;
pid ${folder}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  upstream catalog { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://catalog;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;
}
