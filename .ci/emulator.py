"""AWS on this machine: ministack, and the rewrite of template.yaml for its gaps."""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import boto3
from botocore.exceptions import ClientError, WaiterError
from samtranslator.yaml_helper import yaml_parse

from processes import LOGS, ROOT, free_port, started, wait_until
from sam_transform import transform

REGION = "eu-west-1"
BUILT = Path(os.environ.get("BUILT", ROOT / ".aws-sam" / "build"))
FOLDER = LOGS / "ministack"


@contextlib.contextmanager
def emulator():
    """Starts ministack over TLS, with IAM enforced, and makes it the AWS of this process and its children."""
    # Apart from sam, because each wants a botocore of its own.
    subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
    subprocess.run([FOLDER / "bin" / "pip", "install", "--quiet", "-r", ROOT / ".ci" / "ministack.txt"], check=True)
    certificate, key, port = FOLDER / "certificate.pem", FOLDER / "key.pem", free_port()
    names = "subjectAltName=DNS:localhost,DNS:*.execute-api.localhost,IP:127.0.0.1"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                    "-addext", names, "-addext", "basicConstraints=CA:FALSE", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {"AWS_ENDPOINT_URL": f"https://127.0.0.1:{port}", "AWS_DEFAULT_REGION": REGION, "SAM_CLI_TELEMETRY": "0",
                   "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
                   "AWS_CA_BUNDLE": str(certificate), "SSL_CERT_FILE": str(certificate)}
    settings = {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "IOT_MTLS_ENABLED": "0", "AUTH": "true", "USE_SSL": "1",
                "MINISTACK_SSL_CERT": str(certificate), "MINISTACK_SSL_KEY": str(key)}
    with started("ministack", [FOLDER / "bin" / "ministack"], os.environ | settings) as process:
        wait_until(lambda: "Ready" in process.log.read_text(), process, 60)
        yield port


def digest(function):
    return hashlib.sha256((BUILT / function / "bootstrap").read_bytes()).hexdigest()


def transformed(template, values):
    """The template as the SAM transform of a deployment leaves it, with the code as on this disk."""
    functions = [name for name, one in template["Resources"].items() if one["Type"] == "AWS::Serverless::Function"]
    for function in functions:  # A version is published when the name of its code changes.
        template["Resources"][function]["Properties"]["CodeUri"] = f"s3://code/{digest(function)}"
    values = {name: str(one["Default"]) for name, one in template["Parameters"].items()} | values
    template = transform(template, values)
    for function in functions:
        template["Resources"][function]["Properties"]["Code"] = str(BUILT / function)
    return template


def without_code_deploy(resources):
    """The emulator has no CodeDeploy. Aliases move at once."""
    for name, one in list(resources.items()):
        if "CodeDeploy" in one["Type"] or name == "CodeDeployServiceRole":
            del resources[name]
        one.pop("UpdatePolicy", None)


def without_metric_math(resources):
    """The emulator has no alarms on several metrics."""
    for name, one in list(resources.items()):
        if one["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in one["Properties"]:
            del resources[name]


def with_routes(resources):
    """The emulator ignores the Body of an HTTP API, so its routes and their integrations stand for themselves."""
    for api, one in list(resources.items()):
        if one["Type"] != "AWS::ApiGatewayV2::Api":
            continue
        body = one["Properties"].pop("Body")
        one["Properties"] |= {"Name": body["info"]["title"], "ProtocolType": "HTTP"}
        for path, methods in body["paths"].items():
            for method, operation in methods.items():
                integration = operation["x-amazon-apigateway-integration"]
                key = f"{method.upper()} {path}"
                name = "".join(filter(str.isalnum, key.title()))
                resources[f"{name}Integration"] = {"Type": "AWS::ApiGatewayV2::Integration", "Properties": {
                    "ApiId": {"Ref": api}, "IntegrationType": integration["type"].upper(), "IntegrationUri": integration["uri"],
                    "IntegrationMethod": integration["httpMethod"],
                    "PayloadFormatVersion": integration["payloadFormatVersion"]}}
                resources[f"{name}Route"] = {"Type": "AWS::ApiGatewayV2::Route", "Properties": {
                    "ApiId": {"Ref": api}, "RouteKey": key, "AuthorizationType": next(iter(operation["security"][0])),
                    "Target": {"Fn::Sub": f"integrations/${{{name}Integration}}"}}}


def with_concurrency(resources):
    """The emulator takes the reference in MaximumConcurrency for text, and then hands no message over."""
    for one in resources.values():
        if one["Type"] == "AWS::Lambda::EventSourceMapping":
            one["Properties"]["ScalingConfig"] = {"MaximumConcurrency": 5}


REWRITES = [without_code_deploy, without_metric_math, with_routes, with_concurrency]


def rewritten(template, values):
    """The template for the emulator, in a file."""
    template = transformed(template, values)
    for rewrite in REWRITES:
        rewrite(template["Resources"])
    path = BUILT / "emulated.json"
    path.write_text(json.dumps(template))
    return path


def template():
    return yaml_parse((BUILT / "template.yaml").read_text())


def deployed(stack, resources):
    """Whether these resources can be created."""
    client = boto3.client("cloudformation")
    try:
        client.create_stack(StackName=stack, TemplateBody=json.dumps({"Resources": resources}))
        client.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    except (ClientError, WaiterError):
        return False
    return True
