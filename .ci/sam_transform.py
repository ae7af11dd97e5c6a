"""The SAM transform, as a deployment does it, without AWS. Needs the packages of SAM."""
import logging

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

logging.getLogger("samtranslator").setLevel(logging.ERROR)


def load(path="template.yaml"):
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # as `sam deploy` does
    return template


def transform(template, values):
    session = boto3.session.Session(region_name="eu-west-1")
    return Translator({}, Parser(), boto_session=session).translate(template, dict(values))
