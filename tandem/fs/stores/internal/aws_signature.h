#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/fs/stores/internal/http.h"

namespace tandem::fs {

struct AwsCredentials {
  std::string access_key_id = "";
  std::string secret_access_key = "";
  std::string session_token = "";  ///< empty for keys that do not expire
  std::time_t expires = 0;         ///< seconds since 1970; 0: never

  bool empty() const { return access_key_id.empty(); }
};

using Query = std::vector<std::pair<std::string, std::string>>;

/// A request in the parts that are signed.
struct AwsRequest {
  std::string method = "GET";
  std::string scheme = "https";
  std::string host = "";   ///< with a port that is not the scheme's own
  std::string path = "/";  ///< encoded
  Query query = {};        ///< not encoded
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case
  std::string_view body = {};
};

/// "a=b&c=", encoded and sorted as the signature wants it.
std::string encode_query(Query query);

/// The request with Amazon's Signature Version 4 for `service` ("s3", "sts"); without a signature
/// where the credentials are empty.
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
HttpRequest sign(const AwsRequest& request, const AwsCredentials& credentials,
                 const std::string& region, const std::string& service, std::time_t now);

}  // namespace tandem::fs
