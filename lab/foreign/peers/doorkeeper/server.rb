# Doorkeeper in a Rails application of one file, with the database of DATABASE_URL: server.rb <redirect address>; prints its issuer and version as JSON.
require "logger"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "doorkeeper"
require "webrick"
require "rack/handler/webrick"
require "json"

class User < ActiveRecord::Base
end

class Application < Rails::Application
  config.eager_load = false
  config.log_level = :error
  config.secret_key_base = "a secret of at least thirty-two characters"
  config.logger = Logger.new($stderr, level: :error)
  config.hosts.clear
end

Doorkeeper.configure do
  orm :active_record
  resource_owner_authenticator { User.first }
  skip_authorization { true }
  use_refresh_token
  allow_token_introspection { true }
  default_scopes :mcp
  force_ssl_in_redirect_uri false
  custom_introspection_response { |token, _| { username: User.find(token.resource_owner_id).name } }
end

class MetadataController < ActionController::Base
  def show
    at = ->(name) { "#{request.base_url}/oauth/#{name}" }
    render json: {
      issuer: request.base_url, authorization_endpoint: at["authorize"], token_endpoint: at["token"],
      revocation_endpoint: at["revoke"], response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"]
    }
  end
end

Application.initialize!
Application.routes.draw do
  use_doorkeeper
  get "/.well-known/oauth-authorization-server", to: "metadata#show"
end

ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:users) { |t| t.string :name }
  create_table :oauth_applications do |t|
    t.string :name, :uid, :secret
    t.text :redirect_uri
    t.string :scopes, default: ""
    t.boolean :confidential, default: true
    t.timestamps
  end
  create_table :oauth_access_grants do |t|
    t.integer :resource_owner_id, :application_id, :expires_in
    t.string :token, :scopes, :code_challenge, :code_challenge_method
    t.text :redirect_uri
    t.datetime :created_at, :revoked_at
  end
  create_table :oauth_access_tokens do |t|
    t.integer :resource_owner_id, :application_id, :expires_in
    t.string :token, :refresh_token, :scopes
    t.string :previous_refresh_token, default: "", null: false
    t.datetime :created_at, :revoked_at
  end
end

User.create!(name: "carol")
Doorkeeper::Application.create!(name: "agent", uid: "agent", redirect_uri: ARGV[0], confidential: false, scopes: "mcp")
server = { name: "server", uid: "server", secret: "a-secret-of-the-server", redirect_uri: ARGV[0] }
Doorkeeper::Application.create!(**server)

options = { Host: "127.0.0.1", Port: 0, AccessLog: [], Logger: WEBrick::Log.new($stderr, WEBrick::Log::ERROR) }
Rack::Handler::WEBrick.run(Application, **options) do |web|
  version = Gem.loaded_specs["doorkeeper"]&.version || Doorkeeper::VERSION::STRING
  puts JSON.generate(issuer: "http://127.0.0.1:#{web.listeners[0].addr[1]}", version: version.to_s)
  $stdout.flush
end
