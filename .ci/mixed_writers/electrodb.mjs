// A writer with ElectroDB and the default retries of its client: `electrodb.mjs TABLE COUNT` adds to the item 0 of the table.
// Its packages are in target/ci/rivals. In the end one line of JSON gives the outcomes.
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/target/ci/rivals/`);
const { Entity } = require("electrodb");
const { DynamoDBClient } = require("@aws-sdk/client-dynamodb");

const [table, count] = process.argv.slice(2);
const Item = new Entity(
  {
    model: { entity: "item", version: "1", service: "shop" },
    attributes: { shop: { type: "string" }, item: { type: "string" }, stock: { type: "number" } },
    indexes: {
      primary: {
        pk: { field: "shopId", composite: ["shop"], template: "${shop}" },
        sk: { field: "itemId", composite: ["item"], template: "${item}" },
      },
    },
  },
  { client: new DynamoDBClient(), table },
);

const acknowledged = {};
const unknown = {};
for (let done = 0; done < Number(count); done += 1) {
  const id = "item-00000";
  try {
    await Item.update({ shop: "shop-1", item: id }).add({ stock: 1 }).go();
    acknowledged[id] = (acknowledged[id] ?? 0) + 1;
  } catch (error) {
    console.error(`${id}: ${error}`);
    unknown[id] = (unknown[id] ?? 0) + 1;
  }
}
console.log(JSON.stringify({ acknowledged, unknown }));
