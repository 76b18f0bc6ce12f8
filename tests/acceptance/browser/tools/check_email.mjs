// What mail programs do not understand of an email, as lines "program: feature"; the HTML is on stdin.
import { readFileSync } from "node:fs";
import { caniemail } from "caniemail";

const clients = ["gmail.*", "outlook.ios", "outlook.android", "outlook.macos", "apple-mail.*", "yahoo.*"];
const { issues } = caniemail({ clients, html: readFileSync(0, "utf8") });
for (const [client, found] of issues.errors) {
  for (const { title } of found) console.log(`${client}: ${title}`);
}
