#pragma once

#include <memory>
#include <string>

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tandem::distribute {

/// PEM files of mutual TLS; all empty: in the clear. They are read again while the server runs, so
/// that certificates may be renewed.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string authority;  ///< what peers' certificates are checked with
  bool empty() const { return certificate.empty() && key.empty() && authority.empty(); }
};

/// Throw InvalidArgumentError if a file is missing or some of the three are not given.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsFiles& files);
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const TlsFiles& files);

}  // namespace tandem::distribute
