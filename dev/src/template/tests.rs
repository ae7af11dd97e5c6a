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
fn tables_are_read_with_key_and_ttl() {
    let template = Template::parse(SMALL).expect("parses");
    let key =
        |name: &str, role: &str, kind: &str| KeyAttribute { name: name.into(), role: role.into(), kind: kind.into() };
    let things = Table {
        name: "Things".into(),
        key: vec![key("thingId", "HASH", "S"), key("at", "RANGE", "N")],
        indexes: vec![],
        ttl_attribute: Some("_purgeAt".into()),
    };
    assert_eq!(template.tables, [things]);
}

#[test]
fn indexes_are_read_with_key_and_projection() {
    let with = |projection: &str| {
        let indexes = format!(
            "GlobalSecondaryIndexes: [{{ IndexName: byTime, Projection: {{ {projection} }}, KeySchema: [
              {{ AttributeName: at, KeyType: HASH }}, {{ AttributeName: thingId, KeyType: RANGE }}] }}]\n      TimeTo"
        );
        Template::parse(&SMALL.replacen("TimeTo", &indexes, 1))
    };
    let key =
        |name: &str, role: &str, kind: &str| KeyAttribute { name: name.into(), role: role.into(), kind: kind.into() };
    for (projection, kind, includes) in [
        ("ProjectionType: ALL", "ALL", vec![]),
        ("ProjectionType: INCLUDE, NonKeyAttributes: [a, b]", "INCLUDE", vec!["a".to_owned(), "b".to_owned()]),
    ] {
        let by_time = Index {
            name: "byTime".into(),
            key: vec![key("at", "HASH", "N"), key("thingId", "RANGE", "S")],
            projection: kind.into(),
            includes,
        };
        assert_eq!(with(projection).expect("parses").tables[0].indexes, [by_time]);
    }
    assert!(with("").expect_err("no projection").to_string().contains("ProjectionType"));
}

#[test]
fn a_function_has_its_binary_its_routes_its_queues_and_a_resolved_environment() {
    let template = Template::parse(SMALL).expect("parses");
    let [function] = &template.functions[..] else {
        panic!("one function, not {:?}", template.functions);
    };
    assert_eq!(function.logical_id, "ThingFunction");
    assert_eq!(function.name, "thing");
    let variables: Vec<(&str, &str)> =
        function.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let timeout = ("FUNCTION_TIMEOUT_SECONDS", "10");
    let others = [("METRICS_NAMESPACE", "Shop"), ("SECONDS", "300"), ("SHARED", "1"), ("TABLE", "Things")];
    assert_eq!(variables, [&[timeout, ("LOG", "debug")], &others[..]].concat());
    assert_eq!(function.timeout_seconds, 10);
    let route = Route { path: "/things/{thingId}".into(), method: "PUT".into() };
    assert_eq!(function.routes, [route]);
    assert_eq!(function.queues, ["Queue"]);
}

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
        assert!(failure.exit_code() == 1 && words.iter().all(|word| said.contains(word)), "{what}: {said}");
    }
    assert!(Template::parse("").is_err());
    assert!(Template::parse("just text").is_err());
}

#[test]
fn permissions_are_read_one_by_one() {
    let several = SMALL.replace(
        "Action: dynamodb:GetItem, Resource: !GetAtt Things.Arn",
        "Action: [dynamodb:GetItem, dynamodb:PutItem], Resource: [!GetAtt Things.Arn, !GetAtt Others.Arn]",
    );
    let read = |text: &str| -> Vec<(String, String)> {
        let function = Template::parse(text).expect("parses").functions.remove(0);
        function.permissions.into_iter().map(|permission| (permission.action, permission.resource)).collect()
    };
    let [get, put] = ["dynamodb:GetItem", "dynamodb:PutItem"];
    let pair = |action: &str, resource: &str| (action.to_owned(), resource.to_owned());
    assert_eq!(read(SMALL), [pair(get, "Things")]);
    assert_eq!(read(&several), [pair(get, "Things"), pair(put, "Things"), pair(get, "Others"), pair(put, "Others")]);
    let index = SMALL.replace("!GetAtt Things.Arn }", r#"!Sub "${Things.Arn}/index/byTime" }"#);
    assert_eq!(read(&index), [pair(get, "Things/index/byTime")]);
    let tracing =
        SMALL.replace("dynamodb:GetItem, Resource: !GetAtt Things.Arn", "xray:PutTraceSegments, Resource: \"*\"");
    assert_eq!(read(&tracing), [pair("xray:PutTraceSegments", "*")]);
}

#[test]
fn a_table_without_ttl_or_with_ttl_switched_off_has_none() {
    for text in [SMALL.replace("Enabled: true", "Enabled: false"), SMALL.replace("TimeToLiveSpecification", "Tags")] {
        let template = Template::parse(&text).expect("parses");
        assert_eq!(template.tables[0].ttl_attribute, None);
    }
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

#[test]
fn a_function_has_its_own_timeout_or_the_one_of_all_functions() {
    let timeout = |text: &str| Template::parse(text).expect("parses").functions[0].timeout_seconds;
    let binary = "Binary: thing } }\n    Properties:\n";
    let own = SMALL.replacen(binary, &format!("{binary}      Timeout: 25\n"), 1);
    assert_eq!((timeout(SMALL), timeout(&own)), (10, 25));
}

#[test]
fn functions_that_share_an_environment_are_told_the_shortest_timeout() {
    let other = "
  OtherFunction:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: other } }
    Properties: { Role: !GetAtt ThingRole.Arn, Timeout: SECONDS, Environment: { Variables: { FUNCTION_TIMEOUT_SECONDS: SECONDS, LOG: debug } } }
";
    for (seconds, shortest) in [("5", "5"), ("25", "10")] {
        let template = Template::parse(&format!("{SMALL}{}", other.replace("SECONDS", seconds))).expect("parses");
        let environment = template.environment().expect("one environment");
        assert_eq!(environment[TIMEOUT_VARIABLE], shortest);
        assert_eq!(environment.get("METRICS_NAMESPACE"), None);
    }
}
