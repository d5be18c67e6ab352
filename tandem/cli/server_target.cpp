#include "tandem/cli/server_target.h"

#include <algorithm>
#include <string_view>

namespace tandem::cli {
namespace {

constexpr std::string_view kPlain = "grpc://", kSecure = "grpcs://";

bool is_server(std::string_view target) {
  return target.starts_with(kPlain) || target.starts_with(kSecure);
}

}  // namespace

ServerTarget take_server(std::vector<std::string>& targets, const TlsArguments& tls) {
  ServerTarget server;
  const auto found = std::find_if(targets.begin(), targets.end(), is_server);
  if (found == targets.end()) return server;
  server.address = *found;
  targets.erase(found);
  if (std::any_of(targets.begin(), targets.end(), is_server))
    throw UsageError("--target names two servers: a step has one master, which asks the others");
  server.security = {tls.tls_cert, tls.tls_key, tls.tls_ca, true};
  if (!server.address.starts_with(kSecure)) return server;
  if (tls.tls_cert.empty() || tls.tls_key.empty() || tls.tls_ca.empty())
    throw UsageError("grpcs:// needs --tls-cert, --tls-key and --tls-ca");
  server.address.erase(0, kSecure.size());
  return server;
}

}  // namespace tandem::cli
