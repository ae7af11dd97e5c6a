# The resources of template.yaml as resources of Terraform. It reads template.yaml, so that there is one source.
# docs/beside-sam.md says what it leaves out, and that nobody has run it yet.

terraform {
  required_version = ">= 1.9" # templatestring, and validations that look at locals
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 6.25" }
  }
}

variable "name" { type = string } # stands where template.yaml has the name of the stack, and begins the other names

variable "packages" { default = "../../target/lambda" } # `cargo lambda build --release --arm64 --output-format zip` writes it

variable "parameters" { # values for parameters of template.yaml; the others keep their defaults
  type    = map(string)
  default = {}
  validation {
    condition = alltrue([for name, value in var.parameters : can(local.template.Parameters[name]) && contains(
      name == "Deployment" ? ["AllAtOnce"] : try([for one in local.template.Parameters[name].AllowedValues : tostring(one)], [value]), value)])
    error_message = "A parameter is not in template.yaml, has a value that is not allowed there, or asks for a gradual deployment."
  }
}

data "aws_region" "current" {}

locals {
  # yamldecode refuses tags. Without them `!Ref Orders` is the text Orders, and `!If [A, b, c]` is the list [A, b, c].
  tags       = "/!(Condition|Equals|GetAtt|If|Not|Or|Ref|Select|Split|Sub)\\b/"
  template   = yamldecode(replace(file("${path.module}/../../template.yaml"), local.tags, ""))
  resources  = local.template.Resources
  globals    = local.template.Globals.Function
  parameters = merge({ for name, one in local.template.Parameters : name => tostring(one.Default) }, var.parameters)

  has_metrics = local.parameters.MetricsNamespace != ""
  max_reads   = local.parameters.MaxReadRequestUnits == "-1" ? null : local.parameters.MaxReadRequestUnits
  max_writes  = local.parameters.MaxWriteRequestUnits == "-1" ? null : local.parameters.MaxWriteRequestUnits
  caps        = local.max_reads == null && local.max_writes == null ? [] : ["one block"]
  warm        = local.parameters.WarmWriteUnits == "0" ? [] : ["one block"]
  at_once     = compact([local.parameters.AlarmTopicArn])
  can_wait    = compact([local.parameters.TicketTopicArn != "" ? local.parameters.TicketTopicArn : local.parameters.AlarmTopicArn])

  tables = { for id, one in local.resources : id => one.Properties if one.Type == "AWS::DynamoDB::Table" }
  roles  = { for id, one in local.resources : id => one.Properties if one.Type == "AWS::IAM::Role" }
  logs   = { for id, one in local.resources : id => one.Properties if one.Type == "AWS::Logs::LogGroup" }
  alarms = { for id, one in local.resources : id => one.Properties
  if one.Type == "AWS::CloudWatch::Alarm" && (local.has_metrics || !can(one.Condition)) }
  functions = { for id, one in local.resources : id => merge(local.globals, one.Properties, one.Metadata.BuildProperties)
  if one.Type == "AWS::Serverless::Function" }

  indexes = merge([for id, table in local.tables : { for index in try(table.GlobalSecondaryIndexes, []) :
  "${id}/${index.IndexName}" => [id, index.IndexName] }]...)
  routes = merge([for id, function in local.functions : { for event in values(try(function.Events, {})) :
  "${event.Properties.Method} ${event.Properties.Path}" => id if event.Type == "HttpApi" }]...)
  batches = merge([for id, function in local.functions : { for event in values(try(function.Events, {})) :
  id => event.Properties if event.Type == "SQS" }]...)
  schedules = merge([for id, function in local.functions : { for event in values(try(function.Events, {})) :
  id => event.Properties if event.Type == "Schedule" }]...)

  # What `!Ref`, `!GetAtt` and `!Sub` mean in a function, in a policy, and in an alarm.
  names = merge(local.parameters, { for id, table in aws_dynamodb_table.this : id => table.name })
  arns = merge(
    { for id, table in aws_dynamodb_table.this : "${id}.Arn" => table.arn },
    { for index in values(local.indexes) : "${index[0]}.Arn/index/${index[1]}" =>
    "${aws_dynamodb_table.this[index[0]].arn}/index/${index[1]}" },
    { for id, group in aws_cloudwatch_log_group.this : "${id}.Arn" => "${group.arn}:*" },
    { "DeleteMappingQueue.Arn" = aws_sqs_queue.deletes.arn, "DeleteMappingDeadLetters.Arn" = aws_sqs_queue.dead_letters.arn, "*" = "*" },
  )
  watched = merge(local.names, { for id, function in aws_lambda_function.this : id => function.function_name }, {
    Api                                  = aws_apigatewayv2_api.this.id
    "DeleteMappingQueue.QueueName"       = aws_sqs_queue.deletes.name
    "DeleteMappingDeadLetters.QueueName" = aws_sqs_queue.dead_letters.name
  })

  access_log = local.resources.Api.Properties.AccessLogSettings.Format[0]
  dashboard  = replace(local.resources.Dashboard.Properties.DashboardBody, "AWS::", "")
}

resource "aws_dynamodb_table" "this" {
  for_each                    = local.tables
  name                        = "${var.name}-${each.key}"
  billing_mode                = each.value.BillingMode
  deletion_protection_enabled = each.value.DeletionProtectionEnabled
  hash_key                    = one([for key in each.value.KeySchema : key.AttributeName if key.KeyType == "HASH"])
  dynamic "attribute" {
    for_each = each.value.AttributeDefinitions
    content {
      name = attribute.value.AttributeName
      type = attribute.value.AttributeType
    }
  }
  dynamic "ttl" {
    for_each = try([each.value.TimeToLiveSpecification], [])
    content {
      attribute_name = ttl.value.AttributeName
      enabled        = ttl.value.Enabled
    }
  }
  dynamic "on_demand_throughput" {
    for_each = can(each.value.OnDemandThroughput) ? local.caps : []
    content {
      max_read_request_units  = local.max_reads
      max_write_request_units = local.max_writes
    }
  }
  dynamic "warm_throughput" {
    for_each = can(each.value.WarmThroughput) ? local.warm : []
    content { write_units_per_second = local.parameters.WarmWriteUnits }
  }
  dynamic "global_secondary_index" {
    for_each = try(each.value.GlobalSecondaryIndexes, [])
    content {
      name               = global_secondary_index.value.IndexName
      hash_key           = one([for key in global_secondary_index.value.KeySchema : key.AttributeName if key.KeyType == "HASH"])
      range_key          = one([for key in global_secondary_index.value.KeySchema : key.AttributeName if key.KeyType == "RANGE"])
      projection_type    = global_secondary_index.value.Projection.ProjectionType
      dynamic "on_demand_throughput" {
        for_each = can(global_secondary_index.value.OnDemandThroughput) ? local.caps : []
        content {
          max_read_request_units  = local.max_reads
          max_write_request_units = local.max_writes
        }
      }
      dynamic "warm_throughput" {
        for_each = can(global_secondary_index.value.WarmThroughput) ? local.warm : []
        content { write_units_per_second = local.parameters.WarmWriteUnits }
      }
    }
  }
  point_in_time_recovery { enabled = each.value.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled }
  server_side_encryption { enabled = each.value.SSESpecification.SSEEnabled }
  lifecycle { prevent_destroy = true }
}

resource "aws_dynamodb_contributor_insights" "this" {
  for_each = { for key, one in merge({ for id, table in local.tables : id => [id] }, local.indexes) : key => one
  if local.parameters.ContributorInsights != "NONE" }
  table_name = aws_dynamodb_table.this[each.value[0]].name
  index_name = try(each.value[1], null)
  mode       = local.parameters.ContributorInsights
}

resource "aws_sqs_queue" "deletes" {
  name                       = "${var.name}-delete-mapping"
  visibility_timeout_seconds = local.resources.DeleteMappingQueue.Properties.VisibilityTimeout
  message_retention_seconds  = local.resources.DeleteMappingQueue.Properties.MessageRetentionPeriod
  sqs_managed_sse_enabled    = local.resources.DeleteMappingQueue.Properties.SqsManagedSseEnabled
  redrive_policy = jsonencode(merge(local.resources.DeleteMappingQueue.Properties.RedrivePolicy,
  { deadLetterTargetArn = aws_sqs_queue.dead_letters.arn }))
  lifecycle { prevent_destroy = true }
}

resource "aws_sqs_queue" "dead_letters" {
  name                      = "${var.name}-delete-mapping-dead-letters"
  message_retention_seconds = local.resources.DeleteMappingDeadLetters.Properties.MessageRetentionPeriod
  sqs_managed_sse_enabled   = local.resources.DeleteMappingDeadLetters.Properties.SqsManagedSseEnabled
  lifecycle { prevent_destroy = true }
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id
  redrive_allow_policy = jsonencode(merge(local.resources.DeleteMappingDeadLetters.Properties.RedriveAllowPolicy,
  { sourceQueueArns = [aws_sqs_queue.deletes.arn] }))
}

resource "aws_sqs_queue_policy" "this" {
  for_each  = { DeleteMappingQueue = aws_sqs_queue.deletes.id, DeleteMappingDeadLetters = aws_sqs_queue.dead_letters.id }
  queue_url = each.value
  policy = jsonencode({ Version = "2012-10-17", Statement = [
    for one in local.resources["${each.key}Policy"].Properties.PolicyDocument.Statement :
    merge(one, { Resource = local.arns[one.Resource] })
  ] })
}

resource "aws_cloudwatch_log_group" "this" {
  for_each          = local.logs
  name              = replace(each.value.LogGroupName, "$${AWS::StackName}", var.name)
  retention_in_days = local.parameters[each.value.RetentionInDays]
}

resource "aws_iam_role" "this" {
  for_each           = local.roles
  name               = "${var.name}-${each.key}"
  assume_role_policy = jsonencode(each.value.AssumeRolePolicyDocument)
}

resource "aws_iam_role_policy" "this" {
  for_each = local.roles
  name     = one(each.value.Policies).PolicyName
  role     = aws_iam_role.this[each.key].id
  policy = jsonencode({ Version = "2012-10-17", Statement = [
    for one in one(each.value.Policies).PolicyDocument.Statement :
    merge(one, { Resource = local.arns[replace(one.Resource, "/[^\\w/.*]/", "")] }) # without the braces of `!Sub`
  ] })
}

resource "aws_lambda_function" "this" {
  for_each         = local.functions
  function_name    = "${var.name}-${each.value.Binary}"
  description      = each.value.Description
  role             = aws_iam_role.this[trimsuffix(each.value.Role, ".Arn")].arn
  filename         = "${var.packages}/${each.value.Binary}/bootstrap.zip"
  source_code_hash = filebase64sha256("${var.packages}/${each.value.Binary}/bootstrap.zip")
  runtime          = each.value.Runtime
  handler          = each.value.Handler
  architectures    = [for one in each.value.Architectures : local.parameters[one]]
  memory_size      = each.value.MemorySize
  timeout          = each.value.Timeout
  publish          = true
  environment {
    variables = { for name, value in merge(local.globals.Environment.Variables, each.value.Environment.Variables) :
    name => lookup(local.names, value, value) }
  }
  logging_config {
    log_format            = local.globals.LoggingConfig.LogFormat
    application_log_level = local.parameters[local.globals.LoggingConfig.ApplicationLogLevel]
    system_log_level      = local.globals.LoggingConfig.SystemLogLevel
    log_group             = aws_cloudwatch_log_group.this[each.value.LoggingConfig.LogGroup].name
  }
  tracing_config { mode = each.value.Tracing }
  depends_on = [aws_iam_role_policy.this]
}

resource "aws_lambda_alias" "this" {
  for_each         = local.functions
  name             = each.value.AutoPublishAlias
  function_name    = aws_lambda_function.this[each.key].function_name
  function_version = aws_lambda_function.this[each.key].version
}

resource "aws_lambda_event_source_mapping" "this" {
  for_each                = local.batches
  event_source_arn        = local.arns[each.value.Queue]
  function_name           = aws_lambda_alias.this[each.key].arn
  batch_size              = each.value.BatchSize
  function_response_types = each.value.FunctionResponseTypes
  scaling_config { maximum_concurrency = local.parameters[each.value.ScalingConfig.MaximumConcurrency] }
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each            = local.schedules
  name                = "${var.name}-${each.key}"
  schedule_expression = each.value.Schedule
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.schedules
  rule     = aws_cloudwatch_event_rule.this[each.key].name
  arn      = aws_lambda_alias.this[each.key].arn
}

resource "aws_lambda_permission" "schedule" {
  for_each      = local.schedules
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this[each.key].function_name
  qualifier     = aws_lambda_alias.this[each.key].name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.this[each.key].arn
}

resource "aws_lambda_permission" "route" {
  for_each      = local.routes
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this[each.value].function_name
  qualifier     = aws_lambda_alias.this[each.value].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.this.execution_arn}/*/${replace(replace(each.key, " ", ""), "/{[^}]*}/", "*")}"
}

resource "aws_apigatewayv2_api" "this" {
  name          = var.name
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "this" {
  for_each               = toset(values(local.routes))
  api_id                 = aws_apigatewayv2_api.this.id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST"
  integration_uri        = aws_lambda_alias.this[each.key].invoke_arn
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "this" {
  for_each           = local.routes
  api_id             = aws_apigatewayv2_api.this.id
  route_key          = each.key
  authorization_type = local.resources.Api.Properties.Auth.DefaultAuthorizer
  target             = "integrations/${aws_apigatewayv2_integration.this[each.value].id}"
}

resource "aws_apigatewayv2_stage" "this" {
  api_id      = aws_apigatewayv2_api.this.id
  name        = "$default"
  auto_deploy = true
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.this["ApiLogs"].arn
    format = templatestring(local.access_log, { Member = local.parameters.AuthorizerCaller == "" ? "-" :
    "$context.authorizer.${local.parameters.AuthorizerCaller}" })
  }
  default_route_settings {
    throttling_rate_limit  = local.parameters.ThrottlingRateLimit
    throttling_burst_limit = local.parameters.ThrottlingBurstLimit
  }
}

resource "aws_cloudwatch_log_metric_filter" "api_throttling" {
  count          = local.has_metrics ? 1 : 0
  name           = "${var.name}-api-throttling"
  log_group_name = aws_cloudwatch_log_group.this["ApiLogs"].name
  pattern        = local.resources.ApiThrottlingCount.Properties.FilterPattern
  metric_transformation {
    namespace = local.parameters.MetricsNamespace
    name      = one(local.resources.ApiThrottlingCount.Properties.MetricTransformations).MetricName
    value     = one(local.resources.ApiThrottlingCount.Properties.MetricTransformations).MetricValue
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.AlarmDescription
  comparison_operator = each.value.ComparisonOperator
  threshold           = lookup(local.parameters, each.value.Threshold, each.value.Threshold)
  evaluation_periods  = each.value.EvaluationPeriods
  datapoints_to_alarm = try(each.value.DatapointsToAlarm, null)
  treat_missing_data  = try(each.value.TreatMissingData, null)
  alarm_actions       = each.value.AlarmActions[0] == "HasTicketTopic" ? local.can_wait : local.at_once
  ok_actions          = each.value.OKActions[0] == "HasTicketTopic" ? local.can_wait : local.at_once
  namespace           = try(each.value.Namespace, null)
  metric_name         = try(each.value.MetricName, null)
  statistic           = try(each.value.Statistic, null)
  period              = try(each.value.Period, null)
  dimensions          = try({ for one in each.value.Dimensions : one.Name => local.watched[one.Value] }, null)
  dynamic "metric_query" {
    for_each = try(each.value.Metrics, [])
    content {
      id          = metric_query.value.Id
      label       = try(metric_query.value.Label, null)
      expression  = try(metric_query.value.Expression, null)
      return_data = try(metric_query.value.ReturnData, true)
      dynamic "metric" {
        for_each = try([metric_query.value.MetricStat], [])
        content {
          # A list is `!If [HasMetrics, !Ref MetricsNamespace, none]`.
          namespace = one([for name in [try(metric.value.Metric.Namespace[local.has_metrics ? 1 : 2], metric.value.Metric.Namespace)] :
          lookup(local.parameters, name, name)])
          metric_name = metric.value.Metric.MetricName
          period      = metric.value.Period
          stat        = metric.value.Stat
          dimensions  = try({ for one in metric.value.Metric.Dimensions : one.Name => lookup(local.watched, one.Value, one.Value) }, null)
        }
      }
    }
  }
}

resource "aws_cloudwatch_dashboard" "this" {
  count          = local.has_metrics ? 1 : 0
  dashboard_name = "${var.name}-${data.aws_region.current.region}"
  dashboard_body = templatestring(local.dashboard, merge(local.names, {
    Region                   = data.aws_region.current.region
    DeleteMappingQueue       = { QueueName = aws_sqs_queue.deletes.name }
    DeleteMappingDeadLetters = { QueueName = aws_sqs_queue.dead_letters.name }
  }))
}

output "api_url" { value = aws_apigatewayv2_api.this.api_endpoint }
output "tables" { value = { for id, table in aws_dynamodb_table.this : id => table.name } }
output "queues" { value = { for one in [aws_sqs_queue.deletes, aws_sqs_queue.dead_letters] : one.arn => one.url } }
