use super::*;

const SMALL: &str = r#"
Parameters:
  Seconds: { Type: Number, Default: 300 }
Globals:
  Function:
    Timeout: 10
    Environment:
      Variables: { LOG: info, SHARED: "1", FUNCTION_TIMEOUT_SECONDS: 10, METRICS_NAMESPACE: Shop }
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
  Things:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - { AttributeName: at, AttributeType: N }
        - { AttributeName: thingId, AttributeType: S }
      KeySchema:
        - { AttributeName: thingId, KeyType: HASH }
        - { AttributeName: at, KeyType: RANGE }
      TimeToLiveSpecification: { AttributeName: _purgeAt, Enabled: true }
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      RedrivePolicy: { deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5 }
  Letters:
    Type: AWS::SQS::Queue
    Properties:
      RedriveAllowPolicy: { redrivePermission: byQueue, sourceQueueArns: [!Sub "arn:aws:sqs:${AWS::Region}:1:queue"] }
  QueuePolicy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Queue, !Ref Letters]
      PolicyDocument: { Statement: [{ Effect: Deny, Principal: "*", Action: "sqs:*", Resource: !GetAtt Queue.Arn }] }
  ThingFunction:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: thing } }
    Properties:
      Environment:
        Variables: { TABLE: !Ref Things, SECONDS: !Ref Seconds, LOG: debug }
      Role: !GetAtt ThingRole.Arn
      Events:
        Put: { Type: HttpApi, Properties: { ApiId: !Ref Api, Method: put, Path: "/things/{thingId}" } }
        Queue: { Type: SQS, Properties: { Queue: !GetAtt Queue.Arn, BatchSize: 10 } }
        Timer: { Type: ScheduleV2, Properties: { ScheduleExpression: rate(1 hour) } }
  ThingRole:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement: [{ Effect: Allow, Action: dynamodb:GetItem, Resource: !GetAtt Things.Arn }]
"#;

#[test]
fn what_is_wrong_is_named_with_its_place() {
    const POLICIES: &str = "Policies:\n        - PolicyDocument:";
    const RESOURCE: &str = "Resource: !GetAtt Things.Arn";
    const QUEUE: &str = "Queue: !GetAtt Queue.Arn, BatchSize";
    for (what, find, replacement, words) in [
        ("no YAML", "Parameters:", "Parameters: [", ["template.yaml is not valid YAML", "line"]),
        ("a key given twice", "  Api:", "  Things:", ["duplicated key", ""]),
        ("a reference to nothing", "!Ref Things", "!Ref Thinks", ["Thinks", "Variables.TABLE"]),
        ("a substitution", "!Ref Things", "!Sub Things", ["!Ref Id", ""]),
        ("an attribute", "!Ref Things", "!GetAtt Things.Arn", ["!Ref Id", ""]),
        ("a long reference", "!Ref Things", "{ Ref: Things }", ["!Ref Id", ""]),
        ("no default", ", Default: 300", "", ["Parameters.Seconds", "Default"]),
        ("no binary", "Metadata: { BuildProperties: { Binary: thing } }", "", ["ThingFunction", "Binary"]),
        ("no timeout", "    Timeout: 10\n", "", ["ThingFunction.Properties", "Timeout"]),
        ("half a second", "Timeout: 10", "Timeout: 1.5", ["Globals.Function.Timeout", "seconds"]),
        (
            "a key without a type",
            "AttributeName: at, AttributeType: N",
            "AttributeName: ta, AttributeType: N",
            ["at", ""],
        ),
        ("no key", "KeySchema:", "Schema:", ["KeySchema", ""]),
        ("no role", "KeyType: HASH", "Type: HASH", ["KeyType", ""]),
        ("a local index", "TimeToLiveSpecification", "LocalSecondaryIndexes", ["LocalSecondaryIndexes", ""]),
        (
            "a queue elsewhere",
            QUEUE,
            "Queue: \"arn:aws:sqs:eu-west-1:1:queue\", BatchSize",
            ["Events.Queue.Properties.Queue", "!GetAtt Id.Arn"],
        ),
        (
            "a queue by its name",
            QUEUE,
            "Queue: !Ref Queue, BatchSize",
            ["Events.Queue.Properties.Queue", "!GetAtt Id.Arn"],
        ),
        ("no queue", "Queue: !GetAtt Queue.Arn, ", "", ["has no Properties.Queue", ""]),
        ("a denial", "Effect: Allow", "Effect: Deny", ["Statement.0.Effect", ""]),
        ("any resource", RESOURCE, "Resource: \"*\"", ["!GetAtt Id.Arn", ""]),
        ("any index", RESOURCE, "Resource: !Sub \"${Things.Arn}/index/*\"", ["/index/name", ""]),
        ("anything of a table", RESOURCE, "Resource: !Sub \"${Things.Arn}/*\"", ["/index/name", ""]),
        ("an index without an ARN", RESOURCE, "Resource: !Sub \"${Things}/index/byTime\"", ["/index/name", ""]),
        ("a substitution for a table", RESOURCE, "Resource: !Sub \"${Things.Arn}\"", ["/index/name", ""]),
        (
            "a managed policy",
            POLICIES,
            "ManagedPolicyArns: [a]\n      Policies:\n        - PolicyDocument:",
            ["ManagedPolicyArns", ""],
        ),
        ("a role that SAM makes", "Role: !GetAtt ThingRole.Arn", "Tags: {}", ["ThingFunction", "Properties.Role"]),
        ("a role elsewhere", "!GetAtt ThingRole.Arn", "arn", ["ThingFunction.Properties.Role", "!GetAtt Id.Arn"]),
    ] {
        assert!(SMALL.contains(find), "{what}: the small template has no {find:?}");
        let failure = Template::parse(&SMALL.replacen(find, replacement, 1)).expect_err(what);
        let said = failure.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{what}: {said}");
    }
    assert!(Template::parse("").is_err());
    assert!(Template::parse("just text").is_err());
}

#[test]
fn a_variable_with_two_values_cannot_be_shared() {
    let other = "
  OtherFunction:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: other } }
    Properties: { Role: !GetAtt ThingRole.Arn, Environment: { Variables: { SECONDS: VALUE, LOG: debug } } }
";
    let environment = |value: &str| {
        Template::parse(&format!("{SMALL}{}", other.replace("VALUE", value))).expect("parses").environment()
    };
    assert_eq!(environment("300").expect("the same value")["SECONDS"], "300");
    let said = environment("301").expect_err("two values").to_string();
    assert!(said.contains("SECONDS"), "{said}");
}
