use super::*;

#[test]
fn what_is_wrong_in_the_template_is_named_with_its_place() {
    const TABLE: &str = "MAPPINGS_TABLE: !Ref HostToCellMapping";
    const QUEUE: &str = "Queue: !GetAtt DeleteMappingQueue.Arn";
    const ROLE: &str = "Role: !GetAtt DeleteMappingRole.Arn";
    const POLICIES: &str = "Policies:\n        - PolicyName: own";
    const ALLOWED: &str = "Effect: Allow, Action: [dynamodb:PutItem], Resource";
    const RESOURCE: &str = "Action: [dynamodb:PutItem], Resource: !GetAtt HostToCellMapping.Arn";
    let template = std::fs::read_to_string(crate::workspace().join(FILE)).expect("a text");
    let on = |resource: &str| format!("Action: [dynamodb:PutItem], Resource: {resource}");
    for (find, replacement, words) in [
        ("\n  InventoryLogs:", "\n  InventoryRole:".to_owned(), ["duplicated key", ""]),
        (TABLE, "MAPPINGS_TABLE: !Ref Hosts".to_owned(), ["Hosts", "Variables.MAPPINGS_TABLE"]),
        (TABLE, "MAPPINGS_TABLE: !Sub Hosts".to_owned(), ["!Ref Id", ""]),
        (TABLE, "MAPPINGS_TABLE: other".to_owned(), ["MAPPINGS_TABLE to both", ""]),
        ("    Timeout: 10\n", String::new(), ["Function.Properties", "Timeout"]),
        (QUEUE, "Queue: !Ref DeleteMappingQueue".to_owned(), ["Events.Queue.Properties.Queue", "!GetAtt Id.Arn"]),
        (ALLOWED, ALLOWED.replace("Allow", "Deny"), ["Statement.0.Effect", ""]),
        (RESOURCE, on("\"*\""), ["!GetAtt Id.Arn", ""]),
        (RESOURCE, on("!Sub \"${HostToCellMapping.Arn}/index/*\""), ["/index/name", ""]),
        (RESOURCE, on("!Sub \"${HostToCellMapping.Arn}/*\""), ["/index/name", ""]),
        (RESOURCE, on("!Sub \"${HostToCellMapping}/index/byTime\""), ["/index/name", ""]),
        (RESOURCE, on("!Sub \"${HostToCellMapping.Arn}\""), ["/index/name", ""]),
        (POLICIES, format!("ManagedPolicyArns: [a]\n      {POLICIES}"), ["ManagedPolicyArns", ""]),
        (ROLE, "Tags: {}".to_owned(), ["DeleteMappingFunction", "Properties.Role"]),
        (ROLE, "Role: arn".to_owned(), ["DeleteMappingFunction.Properties.Role", "!GetAtt Id.Arn"]),
    ] {
        assert!(template.contains(find), "{FILE} has no {find:?}");
        let parsed = Template::parse(&template.replacen(find, &replacement, 1));
        let said = parsed.and_then(|template| template.environment()).expect_err(&replacement).to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{replacement}: {said}");
    }
}
