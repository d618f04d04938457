// Bundles the extension into dist/, or with --tests the tests into out/.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const common = { bundle: true, format: "cjs", logLevel: "warning", platform: "node", target: "node20" };

if (process.argv.includes("--tests")) {
  rmSync("out", { force: true, recursive: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  await build({ ...common, entryPoints: tests.map((name) => join("test", name)), outdir: "out", sourcemap: "inline" });
} else {
  rmSync("dist", { force: true, recursive: true });
  const production = process.argv.includes("--production");
  await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    external: ["vscode"],
    minify: production,
    outfile: "dist/extension.js",
    sourcemap: !production,
  });
}
