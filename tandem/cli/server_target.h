#pragma once

#include <string>
#include <vector>

#include "tandem/cli/commands.h"
#include "tandem/distribute/server.h"

namespace tandem::cli {

/// A server of a cluster, named among the nodes that --target takes.
struct ServerTarget {
  std::string address;  ///< "grpc://HOST:PORT" or, with certificates, "HOST:PORT"; empty: none
  distribute::Security security;
};

/// Takes grpc://HOST:PORT or grpcs://HOST:PORT out of the targets. Throws UsageError for grpcs://
/// without certificates, and where there are two servers.
ServerTarget take_server(std::vector<std::string>& targets, const TlsArguments& tls);

}  // namespace tandem::cli
