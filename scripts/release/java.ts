import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { contractFiles } from "./contract-files.ts";

/** Versions of the generators and libraries, which fit each other. */
const GRPC = "1.82.2";
const PROTOBUF = "4.36.1";
const COMMON_PROTOS = "2.72.0";

/** Writes a Maven project with the stubs of the contract, each message in a file of its own. */
export function writeJavaProject(root: string, folder: string, version: string, group: string): void {
  if (!/^[a-z][\w-]*(?:\.[\w-]+)+$/i.test(group)) throw new Error(`${group} is not a group of Maven`);
  for (const name of contractFiles(root)) {
    const path = join(folder, "src", "main", "protobuf", name);
    mkdirSync(dirname(path), { recursive: true });
    const text = readFileSync(join(root, "proto", name), "utf8");
    writeFileSync(path, text.replace(/^package .*;$/m, "$&\n\noption java_multiple_files = true;"));
  }
  cpSync(join(root, "LICENSE"), join(folder, "src", "main", "resources", "META-INF", "LICENSE"));
  writeFileSync(join(folder, "pom.xml"), pom(group, version));
}

function pom(group: string, version: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>${group}</groupId>
  <artifactId>lance-gateway-grpc</artifactId>
  <version>${version}</version>
  <name>lance-gateway-grpc</name>
  <description>gRPC stubs of the Lance Namespace API as Lance Gateway serves it.</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>

  <properties>
    <maven.compiler.release>11</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>

  <dependencies>
${[
  ["io.grpc", "grpc-protobuf", GRPC],
  ["io.grpc", "grpc-stub", GRPC],
  ["com.google.protobuf", "protobuf-java", PROTOBUF],
  ["com.google.api.grpc", "proto-google-common-protos", COMMON_PROTOS],
]
  .map(
    ([groupId, artifactId, number]) => `    <dependency>
      <groupId>${groupId}</groupId>
      <artifactId>${artifactId}</artifactId>
      <version>${number}</version>
    </dependency>`,
  )
  .join("\n")}
  </dependencies>

  <build>
    <extensions>
      <extension>
        <groupId>kr.motd.maven</groupId>
        <artifactId>os-maven-plugin</artifactId>
        <version>1.7.1</version>
      </extension>
    </extensions>
    <plugins>
      <plugin>
        <groupId>org.xolstice.maven.plugins</groupId>
        <artifactId>protobuf-maven-plugin</artifactId>
        <version>0.6.1</version>
        <configuration>
          <protocArtifact>com.google.protobuf:protoc:${PROTOBUF}:exe:\${os.detected.classifier}</protocArtifact>
          <pluginId>grpc-java</pluginId>
          <pluginArtifact>io.grpc:protoc-gen-grpc-java:${GRPC}:exe:\${os.detected.classifier}</pluginArtifact>
          <pluginParameter>@generated=omit</pluginParameter>
          <protoSourceRoot>\${project.basedir}/src/main/protobuf</protoSourceRoot>
        </configuration>
        <executions>
          <execution>
            <goals>
              <goal>compile</goal>
              <goal>compile-custom</goal>
            </goals>
          </execution>
        </executions>
      </plugin>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-resources-plugin</artifactId>
        <version>3.3.1</version>
      </plugin>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-compiler-plugin</artifactId>
        <version>3.13.0</version>
      </plugin>
    </plugins>
  </build>
</project>
`;
}
