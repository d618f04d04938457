// Bundles the extension into dist/, or with --tests the tests into out/.
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const common = { bundle: true, format: "cjs", logLevel: "warning", platform: "node", target: "node20" };

/** The JSON schema of the settings, which the Python package generates; an older checkout has none. */
function copySchemas() {
  const source = join(import.meta.dirname, "..", "..", "torchrepro_lint", "config");
  const target = join(import.meta.dirname, "schemas");
  rmSync(target, { force: true, recursive: true });
  for (const name of readdirSync(source).filter((each) => each.endsWith(".schema.json"))) {
    mkdirSync(target, { recursive: true });
    copyFileSync(join(source, name), join(target, name));
  }
}

if (process.argv.includes("--tests")) {
  rmSync("out", { force: true, recursive: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  await build({ ...common, entryPoints: tests.map((name) => join("test", name)), outdir: "out", sourcemap: "inline" });
} else {
  rmSync("dist", { force: true, recursive: true });
  copySchemas();
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
