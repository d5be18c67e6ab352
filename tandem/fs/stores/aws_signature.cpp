#include "tandem/fs/stores/internal/aws_signature.h"

#include <algorithm>
#include <map>

#include "tandem/fs/stores/internal/crypto.h"

namespace tandem::fs {
namespace {

std::string time_text(const char* format, std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

}  // namespace

std::string encode_query(Query query) {
  for (auto& [name, value] : query) {
    name = url_encode(name);
    value = url_encode(value);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += name + "=" + value;
  }
  return text;
}

HttpRequest sign(const AwsRequest& request, const AwsCredentials& credentials,
                 const std::string& region, const std::string& service, std::time_t now) {
  const std::string query = encode_query(request.query);
  HttpRequest out;
  out.method = request.method;
  out.url =
      request.scheme + "://" + request.host + request.path + (query.empty() ? "" : "?" + query);
  out.headers = request.headers;
  out.body = request.body;
  out.has_body = request.method == "PUT" || request.method == "POST";
  if (credentials.empty()) return out;

  const std::string stamp = time_text("%Y%m%dT%H%M%SZ", now), day = stamp.substr(0, 8);
  const std::string payload = hex(sha256(request.body));
  out.headers.emplace_back("x-amz-content-sha256", payload);
  out.headers.emplace_back("x-amz-date", stamp);
  if (!credentials.session_token.empty()) {
    out.headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  std::map<std::string, std::string> headers(out.headers.begin(), out.headers.end());
  headers["host"] = request.host;
  std::string names, lines;
  for (const auto& [name, value] : headers) {
    if (!names.empty()) names += ';';
    names += name;
    lines += name + ":" + value + "\n";
  }
  const std::string canonical = request.method + "\n" + request.path + "\n" + query + "\n" + lines +
                                "\n" + names + "\n" + payload;
  const std::string scope = day + "/" + region + "/" + service + "/aws4_request";
  const std::string text =
      "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex(sha256(canonical));
  std::string key = hmac_sha256("AWS4" + credentials.secret_access_key, day);
  for (const std::string& part : {region, service, std::string("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  out.headers.emplace_back(
      "authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.access_key_id + "/" + scope +
                           ",SignedHeaders=" + names + ",Signature=" + hex(hmac_sha256(key, text)));
  return out;
}

}  // namespace tandem::fs
