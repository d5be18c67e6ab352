#pragma once

#include <string>
#include <string_view>

namespace tandem::fs {

/// Digests and signatures, computed by OpenSSL; results are bytes.
std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);
std::string md5(std::string_view bytes);

/// RSASSA-PKCS1-v1_5 with SHA-256 (RS256 of a JSON Web Token). Throws InvalidArgumentError for what
/// is no private key in PEM form; `name` is what it calls the key's file.
std::string sign_rs256(const std::string& pem, std::string_view bytes, const std::string& name);

std::string hex(std::string_view bytes);
std::string base64(std::string_view bytes);
/// As of a JSON Web Token: '-' and '_', no padding.
std::string base64_url(std::string_view bytes);

}  // namespace tandem::fs
