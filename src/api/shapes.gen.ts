// Generated from openapi.yaml by scripts/generate.mjs. Do not edit.

export const shapes = {
  "pool": {"type":"object","properties":{
    "account_id": {"type":"string","optional":true},
    "authentication_ruleset_nid": {"type":"string","optional":true},
    "domain_id": {"type":"string"},
    "id": {"type":"string"},
    "status": {"type":"string","optional":true},
    "title": {"type":"string","optional":true},
    "type": {"type":"string","enum":["pool"]}
  }},
  "domain": {"type":"object","properties":{
    "account_id": {"type":"string"},
    "id": {"type":"string"},
    "status": {"type":"string","optional":true},
    "title": {"type":"string","optional":true},
    "type": {"type":"string","enum":["domain"]}
  }},
  "device": {"type":"object","properties":{
    "account_id": {"type":"string","optional":true},
    "domain_id": {"type":"string","optional":true},
    "pool_id": {"type":"string"},
    "id": {"type":"string"},
    "dynamic_client_details": {"type":"object","optional":true,"properties":{
      "auth_profile": {"type":"string","enum":["openid","mcp"],"optional":true},
      "client_secret": {"type":"string","optional":true},
      "pkce_required": {"type":"boolean","optional":true},
      "redirect_uris": {"type":"array","items":{"type":"string"},"optional":true},
      "title": {"type":"string","optional":true}
    }},
    "first_seen": {"type":"object","optional":true,"properties":{
      "asn": {"type":"integer","minimum":1,"optional":true},
      "at": {"type":"number","optional":true},
      "city": {"type":"string","optional":true},
      "country_code": {"type":"string","pattern":"^[A-Z]{2}$","optional":true},
      "ja4_fingerprint": {"type":"string","optional":true},
      "lat_long": {"type":"array","minItems":2,"maxItems":2,"items":{"type":"number"},"optional":true},
      "region_code": {"type":"string","optional":true},
      "remote_ip": {"type":"string","format":"ipv4","optional":true},
      "timezone": {"type":"string","optional":true},
      "user_agent": {"type":"string","optional":true}
    }},
    "last_seen": {"type":"object","optional":true,"properties":{
      "asn": {"type":"integer","minimum":1,"optional":true},
      "at": {"type":"number","optional":true},
      "city": {"type":"string","optional":true},
      "country_code": {"type":"string","pattern":"^[A-Z]{2}$","optional":true},
      "ja4_fingerprint": {"type":"string","optional":true},
      "lat_long": {"type":"array","minItems":2,"maxItems":2,"items":{"type":"number"},"optional":true},
      "region_code": {"type":"string","optional":true},
      "remote_ip": {"type":"string","format":"ipv4","optional":true},
      "timezone": {"type":"string","optional":true},
      "user_agent": {"type":"string","optional":true}
    }},
    "session_type": {"type":"string","enum":["browser","api","mcp"],"optional":true},
    "status": {"type":"string","enum":["active","revoked"],"optional":true},
    "title": {"type":"string","optional":true},
    "type": {"type":"string","enum":["device"]}
  }},
  "pagination": {"type":"object","properties":{
    "item_count": {"type":"number"},
    "item_start": {"type":"number"},
    "item_end": {"type":"number"},
    "page_count": {"type":"number"},
    "page_index": {"type":"number"},
    "page_offset": {"type":"number"},
    "page_size": {"type":"number"},
    "next_page_offset": {"type":"number","nullable":true},
    "previous_page_offset": {"type":"number","nullable":true}
  }},
  "sorting": {"type":"object","properties":{
    "direction": {"type":"string","enum":["asc","desc"],"optional":true},
    "field": {"type":"string","optional":true}
  }},
  "deviceSorting": {"type":"object","properties":{
    "direction": {"type":"string","enum":["asc","desc"],"optional":true},
    "field": {"type":"string","optional":true,"enum":["id","last_seen","status","title"]}
  }}
} as const;
