#include "tandem/distribute/internal/rpc/grpc/security.h"

#include <fstream>

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kRefreshSeconds = 2;

std::shared_ptr<tls::FileWatcherCertificateProvider> watch(const TlsFiles& files) {
  for (const std::string* file : {&files.certificate, &files.key, &files.authority}) {
    if (file->empty()) {
      throw InvalidArgumentError(
          "TLS needs three files: a certificate, its key, and the authority's certificate.");
    }
    if (!std::ifstream(*file)) throw NotFoundError(cat("'", *file, "' cannot be read."));
  }
  return std::make_shared<tls::FileWatcherCertificateProvider>(files.key, files.certificate,
                                                               files.authority, kRefreshSeconds);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(watch(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(watch(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return tls::TlsCredentials(options);
}

}  // namespace tandem::distribute
