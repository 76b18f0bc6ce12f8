// A purchase through the generated types: it compiles only where names and types are right.
import type { components, paths } from "./shop";

type Checkout = paths["/v1/checkout"]["post"];
type Body = Checkout["requestBody"]["content"]["application/json"];
type Placed = Checkout["responses"][201]["content"]["application/json"];
type Refused = Checkout["responses"][409]["content"]["application/problem+json"];

const body: Body = {
  items: [{ sku: "SRM-VITC-30", quantity: 2 }],
  email: "sari@example.com",
  payment_method: "midtrans",
  language: "id",
};
const total = (placed: Placed): number => placed.total_rupiah;
const fields = (refused: Refused): string[] => (refused.errors ?? []).map((error) => error.field);
const picture = (product: components["schemas"]["ProductOut"]): string | null => product.picture_url;

export { body, fields, picture, total };
