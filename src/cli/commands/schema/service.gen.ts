// Generated from openapi.yaml by scripts/generate.mjs. Do not edit.

export const SERVICE_SCHEMAS = {
  pool: {
    "type": "object",
    "description": "A pool.",
    "properties": {
      "account_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning account."
      },
      "authentication_ruleset_nid": {
        "type": [
          "string",
          "null"
        ],
        "description": "Ruleset of the domain for authentication."
      },
      "domain_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning domain."
      },
      "id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Pool identifier."
      },
      "status": {
        "type": [
          "string",
          "null"
        ],
        "description": "Pool status."
      },
      "title": {
        "type": [
          "string",
          "null"
        ],
        "description": "Display title."
      },
      "type": {
        "type": [
          "string",
          "null"
        ],
        "description": "The resource kind.",
        "examples": [
          "pool"
        ]
      }
    }
  },
  domain: {
    "type": "object",
    "description": "A domain.",
    "properties": {
      "account_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning account."
      },
      "id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Domain identifier."
      },
      "status": {
        "type": [
          "string",
          "null"
        ],
        "description": "Domain status."
      },
      "title": {
        "type": [
          "string",
          "null"
        ],
        "description": "Display title."
      },
      "type": {
        "type": [
          "string",
          "null"
        ],
        "description": "The resource kind.",
        "examples": [
          "domain"
        ]
      }
    }
  },
  device: {
    "type": "object",
    "description": "A device.",
    "properties": {
      "account_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning account."
      },
      "domain_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning domain."
      },
      "pool_id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Owning pool."
      },
      "id": {
        "type": [
          "string",
          "null"
        ],
        "description": "Device identifier."
      },
      "dynamic_client_details": {
        "type": [
          "object",
          "null"
        ],
        "description": "Details of the dynamically registered client.",
        "properties": {
          "auth_profile": {
            "type": [
              "string",
              "null"
            ],
            "description": "Authentication profile of the client.",
            "examples": [
              "openid",
              "mcp"
            ]
          },
          "client_secret": {
            "type": [
              "string",
              "null"
            ],
            "description": "Client secret of the registered client."
          },
          "pkce_required": {
            "type": [
              "boolean",
              "null"
            ],
            "description": "Whether PKCE is required."
          },
          "redirect_uris": {
            "type": [
              "array",
              "null"
            ],
            "description": "Redirect addresses.",
            "items": {
              "type": "string"
            }
          },
          "title": {
            "type": [
              "string",
              "null"
            ],
            "description": "Client title."
          }
        }
      },
      "first_seen": {
        "type": [
          "object",
          "null"
        ],
        "description": "Snapshot at the first interaction.",
        "properties": {
          "asn": {
            "type": [
              "integer",
              "null"
            ],
            "description": "Autonomous System Number."
          },
          "at": {
            "type": [
              "number",
              "null"
            ],
            "description": "Unix timestamp in seconds (UTC)."
          },
          "city": {
            "type": [
              "string",
              "null"
            ],
            "description": "City name."
          },
          "country_code": {
            "type": [
              "string",
              "null"
            ],
            "description": "Country code of ISO 3166-1 alpha-2."
          },
          "ja4_fingerprint": {
            "type": [
              "string",
              "null"
            ],
            "description": "JA4 TLS client fingerprint."
          },
          "lat_long": {
            "type": [
              "array",
              "null"
            ],
            "description": "Latitude, then longitude.",
            "items": {
              "type": "number"
            }
          },
          "region_code": {
            "type": [
              "string",
              "null"
            ],
            "description": "Region or state code."
          },
          "remote_ip": {
            "type": [
              "string",
              "null"
            ],
            "description": "IPv4 address in dotted-decimal notation."
          },
          "timezone": {
            "type": [
              "string",
              "null"
            ],
            "description": "IANA timezone identifier."
          },
          "user_agent": {
            "type": [
              "string",
              "null"
            ],
            "description": "User-Agent string."
          }
        }
      },
      "last_seen": {
        "type": [
          "object",
          "null"
        ],
        "description": "Snapshot at the latest interaction.",
        "properties": {
          "asn": {
            "type": [
              "integer",
              "null"
            ],
            "description": "Autonomous System Number."
          },
          "at": {
            "type": [
              "number",
              "null"
            ],
            "description": "Unix timestamp in seconds (UTC)."
          },
          "city": {
            "type": [
              "string",
              "null"
            ],
            "description": "City name."
          },
          "country_code": {
            "type": [
              "string",
              "null"
            ],
            "description": "Country code of ISO 3166-1 alpha-2."
          },
          "ja4_fingerprint": {
            "type": [
              "string",
              "null"
            ],
            "description": "JA4 TLS client fingerprint."
          },
          "lat_long": {
            "type": [
              "array",
              "null"
            ],
            "description": "Latitude, then longitude.",
            "items": {
              "type": "number"
            }
          },
          "region_code": {
            "type": [
              "string",
              "null"
            ],
            "description": "Region or state code."
          },
          "remote_ip": {
            "type": [
              "string",
              "null"
            ],
            "description": "IPv4 address in dotted-decimal notation."
          },
          "timezone": {
            "type": [
              "string",
              "null"
            ],
            "description": "IANA timezone identifier."
          },
          "user_agent": {
            "type": [
              "string",
              "null"
            ],
            "description": "User-Agent string."
          }
        }
      },
      "session_type": {
        "type": [
          "string",
          "null"
        ],
        "description": "Kind of session that the device has.",
        "examples": [
          "browser",
          "api",
          "mcp"
        ]
      },
      "status": {
        "type": [
          "string",
          "null"
        ],
        "description": "Device status.",
        "examples": [
          "active",
          "revoked"
        ]
      },
      "title": {
        "type": [
          "string",
          "null"
        ],
        "description": "Display title."
      },
      "type": {
        "type": [
          "string",
          "null"
        ],
        "description": "The resource kind.",
        "examples": [
          "device"
        ]
      }
    }
  },
} as const;
