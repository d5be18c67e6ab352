#include "tandem/fs/stores/internal/aws_identity.h"

#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/json_answers.h"
#include "tandem/fs/stores/internal/s3_answers.h"

namespace tandem::fs {
namespace {

// Credentials are asked for again so long before they expire.
constexpr std::time_t kMargin = 300;

std::string read_if_there(const std::string& path) {
  try {
    return path.empty() ? "" : read_file(path);
  } catch (const NotFoundError&) {
    return "";
  }
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

StoreOptions nearby(StoreOptions options) {
  options.connect_timeout = std::chrono::milliseconds(1000);
  options.stall_timeout = std::chrono::milliseconds(2000);
  options.attempts = 2;
  return options;
}

Failure explain(const HttpResponse& response) { return parse_s3_error(response.body); }

}  // namespace

AwsIdentity::AwsIdentity(const StoreOptions& options)
    : options_(options), requests_(options, explain), nearby_(nearby(options), explain) {
  profile_ = first_of(
      {options.profile, environment("AWS_PROFILE"), environment("AWS_DEFAULT_PROFILE"), "default"});
  const std::string config_file =
      first_of({environment("AWS_CONFIG_FILE"), in_home(".aws/config")});
  const std::string credentials_file =
      first_of({environment("AWS_SHARED_CREDENTIALS_FILE"), in_home(".aws/credentials")});
  Sections config = parse_sections(read_if_there(config_file));
  settings_ = config[profile_ == "default" ? "default" : "profile " + profile_];
  Sections secrets = parse_sections(read_if_there(credentials_file));
  for (auto& [name, value] : secrets[profile_]) {
    settings_[name] = std::move(value);
  }
  region_ = first_of({options.region, environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"),
                      setting("region"), "us-east-1"});
  endpoint_ = first_of({options.endpoint, environment("AWS_ENDPOINT_URL_S3"),
                        environment("AWS_ENDPOINT_URL"), setting("endpoint_url")});
  while (!endpoint_.empty() && endpoint_.back() == '/') endpoint_.pop_back();
  const std::string style =
      first_of({environment("AWS_S3_ADDRESSING_STYLE"), setting("s3.addressing_style"), "auto"});
  path_style_ = options.path_style || style == "path" || (style == "auto" && !endpoint_.empty());
}

std::string AwsIdentity::setting(const std::string& name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? "" : found->second;
}

AwsCredentials AwsIdentity::credentials(const CancellationPtr& cancellation) {
  if (options_.anonymous) return {};
  const MutexLock lock(mutex_);
  if (known_.empty() || (known_.expires != 0 && known_.expires - kMargin < std::time(nullptr))) {
    known_ = find(cancellation);
  }
  return known_;
}

void AwsIdentity::forget() {
  const MutexLock lock(mutex_);
  known_ = {};
}

AwsCredentials AwsIdentity::find(const CancellationPtr& cancellation) {
  AwsCredentials found{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                       environment("AWS_SESSION_TOKEN")};
  // A profile that the program names counts more than the environment.
  if (options_.profile.empty() && !found.empty() && !found.secret_access_key.empty()) return found;
  const std::string token_file =
      first_of({environment("AWS_WEB_IDENTITY_TOKEN_FILE"), setting("web_identity_token_file")});
  const std::string role = first_of({environment("AWS_ROLE_ARN"), setting("role_arn")});
  if (!token_file.empty() && !role.empty()) {
    return from_web_identity(token_file, role, cancellation);
  }
  found = {setting("aws_access_key_id"), setting("aws_secret_access_key"),
           setting("aws_session_token")};
  if (!found.empty() && !found.secret_access_key.empty()) return found;
  found = from_container(cancellation);
  if (found.empty()) found = from_machine(cancellation);
  if (!found.empty()) return found;
  throw UnauthenticatedError(
      cat("No credentials for s3:// were found: neither AWS_ACCESS_KEY_ID and "
          "AWS_SECRET_ACCESS_KEY, nor AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, nor the "
          "profile '",
          profile_,
          "' of ~/.aws/credentials or ~/.aws/config, nor a service of the machine. For a public "
          "bucket set StoreOptions::anonymous, or TANDEM_S3_ANONYMOUS=1."));
}

AwsCredentials AwsIdentity::from_web_identity(const std::string& token_file,
                                              const std::string& role,
                                              const CancellationPtr& cancellation) {
  const std::string endpoint =
      first_of({environment("AWS_ENDPOINT_URL_STS"), environment("AWS_ENDPOINT_URL"),
                "https://sts." + region_ + ".amazonaws.com"});
  const std::string body =
      encode_query({{"Action", "AssumeRoleWithWebIdentity"},
                    {"Version", "2011-06-15"},
                    {"RoleArn", role},
                    {"RoleSessionName", first_of({environment("AWS_ROLE_SESSION_NAME"), "tandem"})},
                    {"WebIdentityToken", std::string(trim(read_file(token_file)))}});
  const auto make = [&] {
    HttpRequest request;
    request.method = "POST";
    request.url = endpoint + "/";
    request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
    request.body = body;
    request.has_body = true;
    return request;
  };
  return parse_sts_credentials(requests_.send(endpoint, make, cancellation).body, endpoint);
}

AwsCredentials AwsIdentity::from_container(const CancellationPtr& cancellation) {
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string url = relative.empty() ? environment("AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                           : "http://169.254.170.2" + relative;
  if (url.empty()) return {};
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!file.empty()) token = trim(read_file(file));
  const auto make = [&] {
    HttpRequest request;
    request.url = url;
    if (!token.empty()) request.headers = {{"authorization", token}};
    return request;
  };
  return parse_metadata_credentials(nearby_.send(url, make, cancellation).body, url);
}

// Version 2 of the instance's metadata service: a token first, which a request that is forwarded by
// mistake cannot get.
AwsCredentials AwsIdentity::from_machine(const CancellationPtr& cancellation) {
  if (environment("AWS_EC2_METADATA_DISABLED") == "true") return {};
  const std::string service =
      first_of({environment("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"});
  std::string base = service;
  while (!base.empty() && base.back() == '/') base.pop_back();
  HttpRequest request;
  request.method = "PUT";
  request.url = base + "/latest/api/token";
  request.headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  request.has_body = true;
  request.max_body = std::size_t{64} << 10;
  std::string token;
  try {
    token = nearby_
                .send(
                    base, [&] { return request; }, cancellation)
                .body;
  } catch (const CancelledError&) {
    throw;
  } catch (const Error&) {
    return {};  // not a machine of Amazon's
  }
  request.method = "GET";
  request.has_body = false;
  request.headers = {{"x-aws-ec2-metadata-token", token}};
  const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
  request.url = roles;
  const HttpResponse names = nearby_.send(roles, [&] { return request; }, cancellation, {404});
  const std::string_view role = trim(std::string_view(names.body).substr(0, names.body.find('\n')));
  if (!names.ok() || role.empty()) return {};  // the machine has no role
  request.url = roles + url_encode(role);
  return parse_metadata_credentials(nearby_
                                        .send(
                                            request.url, [&] { return request; }, cancellation)
                                        .body,
                                    request.url);
}

AwsCredentials parse_metadata_credentials(std::string_view json, const std::string& path) {
  const nlohmann::json answer = parse_json(json, path);
  AwsCredentials found{text_in(answer, "AccessKeyId", path),
                       text_in(answer, "SecretAccessKey", path), text_in(answer, "Token", path)};
  found.expires = static_cast<std::time_t>(parse_time(text_in(answer, "Expiration", path)));
  return found;
}

}  // namespace tandem::fs
