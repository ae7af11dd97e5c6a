// The stack of template.yaml as a construct of CDK. docs/beside-sam.md says how a team puts its own constructs beside it.
import { App, CfnResource, Stack } from "aws-cdk-lib";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import { CfnFunction } from "aws-cdk-lib/aws-sam";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";
import { existsSync } from "node:fs";

interface Props {
  /** Values for parameters of template.yaml, by their names there. The others stay parameters of the stack. */
  readonly parameters?: Record<string, string>;
  /** The folder that `cargo lambda build --release --arm64 --output-format zip` writes to. */
  readonly packages: string;
}

export class Fencepost extends Construct {
  readonly template: CfnInclude;

  constructor(scope: Construct, id: string, { parameters, packages }: Props) {
    super(scope, id);
    this.template = new CfnInclude(this, "Template", { templateFile: "../../template.yaml", parameters, allowCyclicalReferences: true });
    for (const one of this.node.findAll().filter((one) => one instanceof CfnFunction)) {
      const code = new Asset(one, "Code", { path: `${packages}/${one.getMetadata("BuildProperties").Binary}/bootstrap.zip` });
      one.codeUri = { bucket: code.s3BucketName, key: code.s3ObjectKey };
    }
  }
}

const app = new App({ analyticsReporting: false });
const stack = new Stack(app, "fencepost");
new Fencepost(stack, "Fencepost", { packages: "../../target/lambda" });
