#include "tandem/fs/stores/internal/google_identity.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/aws_signature.h"
#include "tandem/fs/stores/internal/crypto.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/json_answers.h"

namespace tandem::fs {
namespace {

constexpr const char* kScope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* kTokenService = "https://oauth2.googleapis.com/token";
// A token is asked for again so long before it expires.
constexpr std::time_t kMargin = 300;

Failure explain(const HttpResponse& response) { return parse_gcs_error(response.body); }

StoreOptions nearby(StoreOptions options) {
  options.connect_timeout = std::chrono::milliseconds(2000);
  options.stall_timeout = std::chrono::milliseconds(3000);
  options.attempts = 3;
  return options;
}

// The claims of a service account, signed by its key.
// https://developers.google.com/identity/protocols/oauth2/service-account#httprest
std::string assertion(const nlohmann::json& key, const std::string& token_uri,
                      const std::string& file, std::time_t now) {
  nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (key.contains("private_key_id")) header["kid"] = text_in(key, "private_key_id", file);
  const nlohmann::json claims = {{"iss", text_in(key, "client_email", file)},
                                 {"scope", kScope},
                                 {"aud", token_uri},
                                 {"iat", now},
                                 {"exp", now + 3600}};
  const std::string text = base64_url(header.dump()) + "." + base64_url(claims.dump());
  return text + "." + base64_url(sign_rs256(text_in(key, "private_key", file), text, file));
}

}  // namespace

GoogleIdentity::GoogleIdentity(const StoreOptions& options)
    : requests_(options, explain), nearby_(nearby(options), explain) {}

std::string GoogleIdentity::token(const CancellationPtr& cancellation) {
  const MutexLock lock(mutex_);
  if (token_.empty() || expires_ - kMargin < std::time(nullptr)) return find(cancellation);
  return token_;
}

void GoogleIdentity::forget() {
  const MutexLock lock(mutex_);
  token_.clear();
}

void GoogleIdentity::take(const std::string& answer, const std::string& from) {
  GoogleToken token = parse_google_token(answer, from);
  token_ = std::move(token.token);
  expires_ = std::time(nullptr) + static_cast<std::time_t>(token.seconds);
}

std::string GoogleIdentity::find(const CancellationPtr& cancellation) {
  std::string file = environment("GOOGLE_APPLICATION_CREDENTIALS");
  if (!file.empty()) {
    of_key(read_file(file), file, cancellation);  // what is named must be there
    return token_;
  }
  file = in_home(".config/gcloud/application_default_credentials.json");
  if (!file.empty() && exists(file)) {
    of_key(read_file(file), file, cancellation);
    return token_;
  }
  std::string host = environment("GCE_METADATA_HOST");
  if (host.empty()) host = "metadata.google.internal";
  const std::string url =
      "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token";
  const auto make = [&] {
    HttpRequest request;
    request.url = url;
    request.headers = {{"metadata-flavor", "Google"}};
    return request;
  };
  HttpResponse response;
  try {
    response = nearby_.send(url, make, cancellation);
  } catch (const UnavailableError&) {
    throw UnauthenticatedError(
        "No credentials for gs:// were found: neither GOOGLE_APPLICATION_CREDENTIALS, nor "
        "~/.config/gcloud/application_default_credentials.json (gcloud auth application-default "
        "login), nor a metadata server. For a public bucket set StoreOptions::anonymous, or "
        "TANDEM_GS_ANONYMOUS=1.");
  }
  take(response.body, url);
  return token_;
}

void GoogleIdentity::of_key(const std::string& json, const std::string& file,
                            const CancellationPtr& cancellation) {
  const nlohmann::json key = parse_json(json, file);
  const std::string type = text_in(key, "type", file);
  std::string token_uri = key.contains("token_uri") ? text_in(key, "token_uri", file) : "";
  if (token_uri.empty()) token_uri = kTokenService;
  Query form;
  if (type == "service_account") {
    form = {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
            {"assertion", assertion(key, token_uri, file, std::time(nullptr))}};
  } else if (type == "authorized_user") {
    form = {{"grant_type", "refresh_token"},
            {"client_id", text_in(key, "client_id", file)},
            {"client_secret", text_in(key, "client_secret", file)},
            {"refresh_token", text_in(key, "refresh_token", file)}};
  } else {
    throw UnimplementedError(cat(file, "; Credentials of type '", type,
                                 "' are not supported; service_account and authorized_user are"));
  }
  const std::string body = encode_query(std::move(form));
  const auto make = [&] {
    HttpRequest request;
    request.method = "POST";
    request.url = token_uri;
    request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
    request.body = body;
    request.has_body = true;
    return request;
  };
  take(requests_.send(token_uri, make, cancellation).body, token_uri);
}

}  // namespace tandem::fs
