//! The OpenAPI document, generated from the routes and the types; compiled for tests only. The
//! committed and served document is `openapi.json`. After a change of the API, regenerate it with
//! `WEIR_OPENAPI=write cargo test -p weir-api openapi`.

use crate::codes::CODES;
use crate::limits::{PAGE_ITEMS_MAX, REPORT_SECONDS_MAX};
use crate::routes::{self, ROUTES, Route};
use crate::*;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The successful response of an operation.
enum Answer {
    /// JSON of a schema.
    Json(Value),
    /// Something else, of a media type.
    Other(&'static str),
}

/// One operation, beside what [`ROUTES`] says of it.
struct Described {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: Vec<Value>,
    body: Option<Value>,
    status: u16,
    answer: Answer,
    tagged: bool,
}

impl Described {
    fn query(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        self.query.extend(parameters);
        self
    }

    /// Adds the parameters of a change: dry run, precondition and idempotency.
    fn change(self) -> Self {
        let given = match (self.method, self.path) {
            ("POST", routes::EXPORTS | routes::SHARE_RULES | routes::MEMBERS) => {
                vec!["DryRun", "IfMatch", "IdempotencyKey"]
            }
            ("POST", routes::USERS | routes::GROUPS | routes::ADDRESSES) => {
                vec!["DryRun", "IdempotencyKey"]
            }
            ("PATCH", routes::USER) => vec!["DryRun", "IfMatch"],
            ("POST", _) => vec!["DryRun", "Overcommit", "IdempotencyKey"],
            ("PATCH", _) => vec!["DryRun", "Overcommit", "IfMatch"],
            _ => vec!["DryRun", "IfMatch"],
        };
        self.query(given.into_iter().map(parameter)).tagged()
    }

    /// A list in pages.
    fn listed(self) -> Self {
        self.query(["Limit", "After"].map(parameter))
    }

    /// Marks the response as having an etag.
    fn tagged(self) -> Self {
        Self { tagged: true, ..self }
    }

    fn takes(self, schema: Value) -> Self {
        Self { body: Some(schema), ..self }
    }
}

fn parameter(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

fn list_of(schema: &Value) -> Value {
    json!({ "type": "array", "items": schema })
}

fn json(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    schema: Value,
) -> Described {
    let (query, body, status, answer) = (Vec::new(), None, 200, Answer::Json(schema));
    Described { method, path, id, summary, query, body, status, answer, tagged: false }
}

fn other(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    media: &'static str,
) -> Described {
    Described { answer: Answer::Other(media), ..json("GET", path, id, summary, Value::Null) }
}

/// The operations; `schemas` generates the schemas.
fn operations(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let parts = [
        server,
        levels,
        pools,
        volumes,
        capacity,
        exports,
        shares,
        users,
        groups,
        gateways,
        addresses,
        clients,
        watching,
        administration,
    ];
    parts.into_iter().flat_map(|part| part(schemas)).collect()
}

fn server(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (info, health) = (of::<ServerInfo>(schemas), of::<Health>(schemas));
    vec![
        other(
            routes::LIVENESS,
            "isAlive",
            "Liveness: succeeds while the process runs.",
            "text/plain",
        ),
        other(
            routes::READINESS,
            "isReady",
            "Readiness: 503 if a volume is not served.",
            "text/plain",
        ),
        other(
            routes::METRICS,
            "getMetrics",
            "Metrics in Prometheus' text format.",
            "application/openmetrics-text",
        )
        .query([gateways_query(Gateways::This)]),
        other(routes::OPENAPI, "getOpenApi", "This document.", "application/json"),
        json("GET", routes::SERVER, "getServer", "Information about the server.", info),
        json(
            "GET",
            routes::HEALTH,
            "getHealth",
            "State of the server, or of all gateways of its cluster: whether all volumes are served.",
            health,
        )
        .query([gateways_query(Gateways::All)]),
    ]
}

fn levels(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (level, changed) = (of::<Level>(schemas), of::<Changed<Level>>(schemas));
    let change =
        "Change a custom service level; takes effect immediately in all pools that use it.";
    let delete = "Delete a custom service level that no pool uses.";
    vec![
        json(
            "GET",
            routes::LEVELS,
            "listLevels",
            "List all service levels.",
            of::<Page<Level>>(schemas),
        )
        .listed(),
        json(
            "POST",
            routes::LEVELS,
            "createLevel",
            "Create a custom service level.",
            changed.clone(),
        )
        .takes(of::<NewLevel>(schemas))
        .change(),
        json("GET", routes::LEVEL, "getLevel", "Get one service level.", level).tagged(),
        json("PATCH", routes::LEVEL, "changeLevel", change, changed.clone())
            .takes(of::<LevelChange>(schemas))
            .change(),
        json("DELETE", routes::LEVEL, "deleteLevel", delete, changed).change(),
    ]
}

fn pools(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (pool, changed) = (of::<Pool>(schemas), of::<Changed<Pool>>(schemas));
    let delete = "Delete an empty pool.";
    vec![
        json("GET", routes::POOLS, "listPools", "List all pools.", of::<Page<Pool>>(schemas))
            .listed(),
        json("POST", routes::POOLS, "createPool", "Create a pool.", changed.clone())
            .takes(of::<NewPool>(schemas))
            .change(),
        json("GET", routes::POOL, "getPool", "Get one pool.", pool).tagged(),
        json("PATCH", routes::POOL, "changePool", "Change a pool.", changed.clone())
            .takes(of::<PoolChange>(schemas))
            .change(),
        json("DELETE", routes::POOL, "deletePool", delete, changed).change(),
    ]
}

fn volumes(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (volume, changed) = (of::<Volume>(schemas), of::<Changed<Volume>>(schemas));
    let create = "Create a volume; it can be mounted when the response arrives.";
    let change = "Change the contract of a volume, or move the volume to another pool.";
    let delete = "Delete a volume and all its files.";
    let operations = "List the last 256 operations since the server started.";
    let rescan = "Recount the usage of a volume in the background.";
    vec![
        json(
            "GET",
            routes::VOLUMES,
            "listVolumes",
            "List all volumes.",
            of::<Page<Volume>>(schemas),
        )
        .listed(),
        json("POST", routes::VOLUMES, "createVolume", create, changed.clone())
            .takes(of::<NewVolume>(schemas))
            .change(),
        json("GET", routes::VOLUME, "getVolume", "Get one volume.", volume.clone()).tagged(),
        json("PATCH", routes::VOLUME, "changeVolume", change, changed.clone())
            .takes(of::<VolumeChange>(schemas))
            .change(),
        json("DELETE", routes::VOLUME, "deleteVolume", delete, changed).change(),
        Described {
            status: 202,
            ..json("POST", routes::RESCAN, "rescanVolume", rescan, of::<Operation>(schemas))
        },
        json(
            "GET",
            routes::OPERATIONS,
            "listOperations",
            operations,
            of::<Page<Operation>>(schemas),
        )
        .listed(),
        json(
            "GET",
            routes::OPERATION,
            "getOperation",
            "Get one operation.",
            of::<Operation>(schemas),
        ),
    ]
}

fn capacity(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (one, changed) = (of::<Calibration>(schemas), of::<Changed<Calibration>>(schemas));
    let capacity = "Get the measured capacity, and the capacity committed to contracts.";
    let sizing = "Get what to provision for a wanted rate, or the rate of a quota.";
    let asked = queries_of::<SizingQuery>(schemas);
    let list = "List the calibrations.";
    let show = "Get the calibration of one directory; the name is its path.";
    let keep = "Store the calibration of a directory; it replaces an earlier calibration of the same file system.";
    let forget = "Delete the calibration of a directory.";
    vec![
        json("GET", routes::CAPACITY, "getCapacity", capacity, of::<Capacity>(schemas)),
        json("GET", routes::SIZING, "getSizing", sizing, of::<Sizing>(schemas)).query(asked),
        json(
            "GET",
            routes::CALIBRATIONS,
            "listCalibrations",
            list,
            of::<Page<Calibration>>(schemas),
        )
        .listed(),
        json("GET", routes::CALIBRATION, "getCalibration", show, one).tagged(),
        json("PUT", routes::CALIBRATION, "keepCalibration", keep, changed.clone())
            .takes(of::<NewCalibration>(schemas))
            .change(),
        json("DELETE", routes::CALIBRATION, "forgetCalibration", forget, changed).change(),
    ]
}

/// The network in the query of a removal.
fn network_query(description: &str) -> Value {
    json!({
        "name": "network", "in": "query", "required": true, "schema": { "type": "string" },
        "description": description,
    })
}

fn exports(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let rule = of::<ExportRule>(schemas);
    let (rules, changed) = (list_of(&rule), of::<Changed<Volume>>(schemas));
    let list = "List the export rules of a volume, in the order in which they are evaluated.";
    let network = network_query("Network of the export rule.");
    let remove = "Remove the export rule of one network.";
    vec![
        json("GET", routes::EXPORTS, "listExports", list, rules.clone()).tagged(),
        json(
            "PUT",
            routes::EXPORTS,
            "setExports",
            "Replace all export rules of a volume.",
            changed.clone(),
        )
        .takes(rules)
        .change(),
        json(
            "POST",
            routes::EXPORTS,
            "addExport",
            "Add an export rule to a volume.",
            changed.clone(),
        )
        .takes(rule)
        .change(),
        json("DELETE", routes::EXPORTS, "removeExport", remove, changed).query([network]).change(),
    ]
}

fn shares(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let rule = of::<ShareRule>(schemas);
    let (rules, changed) = (list_of(&rule), of::<Changed<Volume>>(schemas));
    let list = "List the share rules of a volume, in the order in which they are evaluated.";
    let set = "Replace all share rules of a volume.";
    let add = "Add a share rule to a volume.";
    let remove = "Remove the share rule for one network and the given users.";
    let which = [
        network_query("Network of the share rule, or `any`."),
        text_query("user", "User of the share rule."),
        text_query("group", "Group of the share rule."),
    ];
    vec![
        json("GET", routes::SHARE_RULES, "listShareRules", list, rules.clone()).tagged(),
        json("PUT", routes::SHARE_RULES, "setShareRules", set, changed.clone())
            .takes(rules)
            .change(),
        json("POST", routes::SHARE_RULES, "addShareRule", add, changed.clone())
            .takes(rule)
            .change(),
        json("DELETE", routes::SHARE_RULES, "removeShareRule", remove, changed)
            .query(which)
            .change(),
    ]
}

fn users(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (user, changed) = (of::<User>(schemas), of::<Changed<User>>(schemas));
    let create = "Create a user without a password.";
    let password = "Set the password of a user.";
    let delete = "Delete a user that no share rule names; files are not changed.";
    vec![
        json("GET", routes::USERS, "listUsers", "List all users.", of::<Page<User>>(schemas))
            .listed(),
        json("POST", routes::USERS, "createUser", create, changed.clone())
            .takes(of::<NewUser>(schemas))
            .change(),
        json("GET", routes::USER, "getUser", "Get one user.", user).tagged(),
        json("PATCH", routes::USER, "changeUser", "Change a user.", changed.clone())
            .takes(of::<UserChange>(schemas))
            .change(),
        json("DELETE", routes::USER, "deleteUser", delete, changed.clone()).change(),
        json("PUT", routes::PASSWORD, "setPassword", password, changed)
            .takes(of::<NewPassword>(schemas))
            .change(),
    ]
}

fn groups(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (group, changed) = (of::<Group>(schemas), of::<Changed<Group>>(schemas));
    let delete = "Delete a group that no share rule names; its users are not deleted.";
    let mut user = text_query("user", "Name of the user.");
    user["required"] = json!(true);
    let (add, remove) = ("Add a user to a group.", "Remove a user from a group.");
    vec![
        json("GET", routes::GROUPS, "listGroups", "List all groups.", of::<Page<Group>>(schemas))
            .listed(),
        json("POST", routes::GROUPS, "createGroup", "Create a group.", changed.clone())
            .takes(of::<NewGroup>(schemas))
            .change(),
        json("GET", routes::GROUP, "getGroup", "Get one group.", group).tagged(),
        json("DELETE", routes::GROUP, "deleteGroup", delete, changed.clone()).change(),
        json("POST", routes::MEMBERS, "addMember", add, changed.clone())
            .takes(of::<Member>(schemas))
            .change(),
        json("DELETE", routes::MEMBERS, "removeMember", remove, changed).query([user]).change(),
    ]
}

fn gateways(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (gateway, home) = (of::<Gateway>(schemas), of::<VolumeHome>(schemas));
    let list = of::<Page<Gateway>>(schemas);
    let all = "List the gateways of the cluster.";
    let remove = "Remove a gateway that has ended from the cluster.";
    let drain = "Move all addresses away from a gateway, and give it no new ones; returns before \
                 they have moved.";
    let undrain = "Let a gateway that was drained have addresses again.";
    let gone = "State that no process of a gateway runs, for example because its machine is off: \
                its addresses are taken over without asking it.";
    let show = "Get the gateway that serves a volume.";
    let move_home = "Move a volume, and all others of its address, to another gateway; returns \
                     before they have moved.";
    vec![
        json("GET", routes::GATEWAYS, "listGateways", all, list).listed(),
        json("DELETE", routes::GATEWAY, "removeGateway", remove, gateway.clone()),
        json("PUT", routes::GATEWAY_DRAIN, "drainGateway", drain, gateway.clone()),
        json("DELETE", routes::GATEWAY_DRAIN, "undrainGateway", undrain, gateway.clone()),
        json("PUT", routes::GATEWAY_GONE, "declareGatewayGone", gone, gateway),
        json("GET", routes::VOLUME_HOME, "getVolumeHome", show, home.clone()),
        json("PUT", routes::VOLUME_HOME, "moveVolumeHome", move_home, home)
            .takes(of::<HomeChange>(schemas)),
    ]
}

fn addresses(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let changed = of::<Changed<Address>>(schemas);
    let list = of::<Page<Address>>(schemas);
    let all = "List the addresses of the cluster.";
    let add = "Add an address, at which clients can reach volumes of the cluster.";
    let remove = "Remove an address that no volume has.";
    vec![
        json("GET", routes::ADDRESSES, "listAddresses", all, list).listed(),
        json("POST", routes::ADDRESSES, "addAddress", add, changed.clone())
            .takes(of::<NewAddress>(schemas))
            .change(),
        json("DELETE", routes::ADDRESS, "removeAddress", remove, changed).change(),
    ]
}

fn clients(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (session, open) = (of::<SmbSession>(schemas), of::<SmbOpen>(schemas));
    let lock = of::<FileLock>(schemas);
    let opens = "List the files and directories that SMB clients have open.";
    let locks = "List the byte-range locks of SMB and NFS clients, and the requests that wait.";
    let end = "End an SMB session, and close its opens; the client's next request on it fails.";
    let close = "Close an open of an SMB client, and release its locks; the client's next request \
                 on it fails.";
    let release = "Release a byte-range lock of an SMB or NFS client, or cancel a request that waits \
                   for one; NFS clients are not informed.";
    let all = "List all SMB sessions.";
    vec![
        json("GET", routes::SMB_SESSIONS, "listSmbSessions", all, of::<Page<SmbSession>>(schemas))
            .listed(),
        json("DELETE", routes::SMB_SESSION, "closeSmbSession", end, session),
        json("GET", routes::SMB_OPENS, "listSmbOpens", opens, of::<Page<SmbOpen>>(schemas))
            .listed(),
        json("DELETE", routes::SMB_OPEN, "closeSmbOpen", close, open),
        json("GET", routes::LOCKS, "listLocks", locks, of::<Page<FileLock>>(schemas)).listed(),
        json("DELETE", routes::LOCK, "closeLock", release, lock),
    ]
}

fn watching(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let either = [of::<Report>(schemas), of::<SignedReport>(schemas)];
    let report = "Get the contract report of a volume, signed if requested.";
    let why = "Explain the current performance of a volume.";
    let load = "Get the operations, the clients and the kind of the load of a volume.";
    let since = json!({
        "name": "since", "in": "query", "description": "Length of the reported period up to now, in seconds.",
        "schema": {
            "type": "integer", "minimum": 1, "maximum": REPORT_SECONDS_MAX, "default": 24 * 3600,
        },
    });
    let signed = json!({
        "name": "signed", "in": "query", "description": "Sign the report.",
        "schema": { "type": "boolean", "default": false },
    });
    vec![
        json("GET", routes::REPORT, "getReport", report, json!({ "anyOf": either }))
            .query([since, signed]),
        json("GET", routes::WHY, "getWhy", why, of::<Why>(schemas)),
        json("GET", routes::LOAD, "getLoad", load, of::<Load>(schemas)),
        json(
            "GET",
            routes::ACTIVITY,
            "getActivity",
            "Get the activity of all volumes.",
            of::<Activity>(schemas),
        )
        .query([gateways_query(Gateways::All)]),
    ]
}

fn administration(schemas: &mut SchemaGenerator) -> Vec<Described> {
    let (token, made) = (of::<Token>(schemas), of::<MadeToken>(schemas));
    let backup = "Download a backup of the catalogue, including the key of the file handles.";
    let list = "List all tokens except that of the data directory.";
    let limit = json!({
        "name": "limit", "in": "query", "description": "Maximum number of records.",
        "schema": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 },
    });
    vec![
        other(routes::CATALOG_BACKUP, "backUpCatalog", backup, "application/vnd.sqlite3"),
        json("GET", routes::TOKENS, "listTokens", list, of::<Page<Token>>(schemas)).listed(),
        json("POST", routes::TOKENS, "createToken", "Create a token.", made)
            .takes(of::<NewToken>(schemas)),
        json("DELETE", routes::TOKEN, "revokeToken", "Revoke a token.", token),
        json(
            "GET",
            routes::AUDIT,
            "readAudit",
            "Get a page of the audit log.",
            of::<AuditPage>(schemas),
        )
        .query([
            text_query("since", "Return only records since this time: RFC 3339, UTC."),
            text_query("after", "Start after this position: the `next` of the previous page."),
            limit,
        ]),
    ]
}

/// The fields of a type as optional parameters of a query.
fn queries_of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Vec<Value> {
    let schema = T::json_schema(schemas).to_value();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        let described = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({ "name": name, "in": "query", "description": described, "schema": schema })
    };
    fields.into_iter().map(parameter).collect()
}

/// The choice between the gateway that is asked and all gateways.
fn gateways_query(default: Gateways) -> Value {
    json!({
        "name": "gateways", "in": "query",
        "description": "In a cluster: answer for the gateway that is asked, or for all gateways. \
                        A server that is alone answers for itself.",
        "schema": { "type": "string", "enum": [Gateways::This, Gateways::All], "default": default },
    })
}

fn text_query(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": "string" } })
}

fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// The description of an operation in the document.
fn described(operation: &Described, route: &Route) -> Value {
    let tag = match operation.path.split('/').nth(2) {
        Some(tag) if operation.path.starts_with("/v1/") => tag,
        _ => "server",
    };
    let tag = if ["health", "openapi.json"].contains(&tag) { "server" } else { tag };
    let answer = match &operation.answer {
        Answer::Json(schema) => json!({ "application/json": { "schema": schema } }),
        Answer::Other(media) => json!({ *media: {} }),
    };
    let mut responses = Map::new();
    let mut answer = json!({ "description": operation.summary, "content": answer });
    if operation.tagged {
        answer["headers"] = json!({ "ETag": { "$ref": "#/components/headers/ETag" } });
    }
    responses.insert(operation.status.to_string(), answer);
    responses.insert("4XX".to_owned(), json!({ "$ref": "#/components/responses/Refused" }));
    let failed = match operation.path {
        routes::READINESS => "NotReady",
        _ => "Failed",
    };
    responses
        .insert("5XX".to_owned(), json!({ "$ref": format!("#/components/responses/{failed}") }));
    let mut out = json!({
        "operationId": operation.id,
        "summary": operation.summary.trim_end_matches('.'),
        "tags": [tag],
        "responses": responses,
    });
    match route.least {
        Some(least) => {
            out["description"] = json!(format!("{} Requires the role {least}.", operation.summary));
            out["x-weir-role"] = json!(least);
        }
        None => {
            out["description"] = json!(format!("{} No token is required.", operation.summary));
            out["security"] = json!([]);
        }
    }
    if !operation.query.is_empty() {
        out["parameters"] = json!(operation.query);
    }
    if let Some(schema) = &operation.body {
        let content = json!({ "application/json": { "schema": schema } });
        out["requestBody"] = json!({ "required": true, "content": content });
    }
    out
}

fn components(schemas: &Map<String, Value>) -> Value {
    let error =
        json!({ "application/json": { "schema": { "$ref": "#/components/schemas/ApiError" } } });
    let name = json!({
        "name": "name", "in": "path", "required": true, "description": "Name of the object.",
        "schema": { "type": "string" },
    });
    let dry_run = json!({
        "name": "dry_run", "in": "query",
        "description": "Validate the change and return its effect, without making it.",
        "schema": { "type": "boolean", "default": false },
    });
    let overcommit = json!({
        "name": "overcommit", "in": "query",
        "description": "Make the change even if it commits more than the measured capacity.",
        "schema": { "type": "boolean", "default": false },
    });
    let limit = json!({
        "name": "limit", "in": "query", "description": "Maximum number of items on a page.",
        "schema": {
            "type": "integer", "minimum": 1, "maximum": PAGE_ITEMS_MAX, "default": PAGE_ITEMS_MAX,
        },
    });
    let after = text_query("after", "Start after this position: the `next` of the previous page.");
    let if_match = json!({
        "name": "If-Match", "in": "header", "schema": { "type": "string" },
        "description": "Refuse the change (412) unless the object still has this etag.",
    });
    let key = json!({
        "name": "Idempotency-Key", "in": "header",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        "description": "Unique key of the request. A repeated request with the same key within 24 \
                        hours returns the original response and changes nothing.",
    });
    let etag = json!({
        "description": "Etag of the object, excluding live data.",
        "schema": { "type": "string" },
    });
    let parameters = json!({
        "Name": name, "DryRun": dry_run, "Limit": limit, "After": after, "IfMatch": if_match,
        "IdempotencyKey": key, "Overcommit": overcommit,
    });
    json!({
        "schemas": schemas,
        "parameters": parameters,
        "headers": { "ETag": etag },
        "responses": {
            "Refused": { "description": "The request was refused; `code` gives the reason.", "content": error },
            "Failed": { "description": "The server failed; its log has details.", "content": error },
            "NotReady": {
                "description": "A volume is not served.",
                "content": { "text/plain": {} },
            },
        },
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "Token from `weir token create`, or the token of the data directory. No \
                                token is required on the Unix socket in the data directory.",
            },
        },
    })
}

/// The whole document.
fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    of::<ApiError>(&mut generator);
    let operations = operations(&mut generator);
    let mut paths = Map::new();
    for route in ROUTES {
        let found =
            operations.iter().find(|one| (one.method, one.path) == (route.method, route.path));
        let Some(operation) = found else {
            panic!("{} {} is not described", route.method, route.path)
        };
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if route.path.contains("{name}") {
            path["parameters"] = json!([parameter("Name")]);
        }
        path[route.method.to_lowercase()] = described(operation, route);
    }
    assert_eq!(operations.len(), ROUTES.len(), "each operation is a route, and described once");
    let mut schemas = generator.take_definitions(true);
    let codes: Vec<_> = CODES.iter().map(|code| code.word).collect();
    schemas["ApiError"]["properties"]["code"]["examples"] = json!(codes);
    let tags = [
        ("server", "Server information, state and metrics."),
        ("levels", "Service levels."),
        ("pools", "Capacity pools."),
        ("volumes", "Volumes, their contracts, export rules and share rules."),
        ("users", "Users, who can log in over SMB."),
        ("groups", "Groups of users."),
        ("gateways", "Gateways of a cluster."),
        ("addresses", "Addresses at which clients reach the volumes of a cluster."),
        ("smb", "Sessions and opens of SMB clients."),
        ("locks", "Byte-range locks of clients."),
        ("capacity", "Measured and committed capacity."),
        ("sizing", "What to provision for a wanted rate."),
        ("calibrations", "Calibrations of file systems."),
        ("operations", "Long-running operations."),
        ("catalog", "The catalogue."),
        ("tokens", "API tokens for access over TCP."),
        ("audit", "Audit log of changes and refused requests."),
    ];
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Network file storage whose volumes keep a performance contract.",
            "description": "Sizes are bytes and rates bytes per second, as integers of up to 64 bits. \
                            See docs/api.md.",
            "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7437", "description": "Default of api.listen" }],
        "security": [{ "token": [] }],
        "tags": tags.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": components(&schemas),
    })
}

#[test]
fn the_committed_document_is_the_one_of_the_code() {
    let made = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    if std::env::var_os("WEIR_OPENAPI").is_some_and(|what| what == "write") {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let differs = made.lines().zip(committed.lines()).find(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "openapi.json is not that of the code ({differs:?}): \
         WEIR_OPENAPI=write cargo test -p weir-api openapi"
    );
}
