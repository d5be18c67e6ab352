// Whose requests they are: credentials from variables, files and services, and signatures.

#include <cstdlib>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/stores/store_util.h"

namespace tandem::fs {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Variables for as long as it lives; an empty value removes one.
class Variables {
 public:
  using Values = std::map<std::string, std::string>;
  explicit Variables(const Values& values) {
    for (const auto& [name, value] : values) {
      before_[name] = server(name.c_str());
      set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) set(name, value);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void set(const std::string& name, const std::string& value) {
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::map<std::string, std::string> before_;
};

class Identity : public ::testing::Test {
 protected:
  void SetUp() override {
    services_ = server("TANDEM_TEST_CREDENTIALS");
    if (services_.empty()) GTEST_SKIP() << "run by tests/stores/run.py";
  }
  // The server answers how a request for "echo" was signed.
  std::string signature(const std::string& kind, StoreOptions options) {
    options.attempts = 1;
    const auto files = make_store(kind, options);
    const auto file = files->open(kind + "://bucket/echo");
    std::string bytes(file->known_size().value_or(0), ' ');
    bytes.resize(file->read(0, bytes));
    return bytes;
  }
  std::string s3() { return signature("s3", {.endpoint = services_}); }

  const Variables::Values none_{{"AWS_ACCESS_KEY_ID", ""}, {"AWS_SECRET_ACCESS_KEY", ""}};
  std::string services_;
};

TEST_F(Identity, ComesFromVariables) {
  const Variables set(
      Variables::Values{{"AWS_SESSION_TOKEN", "a-token"}, {"AWS_REGION", "sa-east-1"}});
  const std::string seen = s3();
  EXPECT_THAT(seen, StartsWith("AWS4-HMAC-SHA256 Credential=testing/"));
  EXPECT_THAT(seen, HasSubstr("/sa-east-1/s3/aws4_request,"));
  EXPECT_THAT(seen, HasSubstr("token=a-token"));
}

TEST_F(Identity, ComesFromFiles) {
  const Variables set(none_);
  EXPECT_THAT(s3(), HasSubstr("Credential=of-default/"));
  EXPECT_THAT(s3(), HasSubstr("/eu-north-1/s3/"));
  const Variables profile(Variables::Values{{"AWS_PROFILE", "work"}});
  const std::string seen = signature("s3", {});  // the endpoint is of the profile too
  EXPECT_THAT(seen, HasSubstr("Credential=of-work/"));
  EXPECT_THAT(seen, HasSubstr("/eu-west-3/s3/"));
  EXPECT_THAT(seen, HasSubstr("token=tok"));
}

TEST_F(Identity, ComesFromServicesOfTheMachine) {
  const Variables set(none_);
  const Variables home(Variables::Values{{"HOME", "/nonexistent"},
                                         {"AWS_EC2_METADATA_DISABLED", ""},
                                         {"AWS_EC2_METADATA_SERVICE_ENDPOINT", services_}});
  const std::string seen = s3();
  EXPECT_THAT(seen, HasSubstr("Credential=testing/"));
  EXPECT_THAT(seen, HasSubstr("token=t"));
  const Variables container(
      Variables::Values{{"AWS_EC2_METADATA_DISABLED", "true"},
                        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", services_ + "/container"},
                        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret"}});
  EXPECT_THAT(s3(), HasSubstr("Credential=testing/"));
}

TEST_F(Identity, ComesFromAWebIdentity) {
  const std::string sts = server("TANDEM_TEST_S3");
  if (sts.empty()) GTEST_SKIP() << "no server";
  const Variables set(none_);
  const Variables web(
      Variables::Values{{"HOME", "/nonexistent"},
                        {"AWS_ENDPOINT_URL_STS", sts},
                        {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader"},
                        {"AWS_WEB_IDENTITY_TOKEN_FILE", server("TANDEM_TEST_WEB_TOKEN")}});
  const std::string seen = s3();
  EXPECT_THAT(seen, HasSubstr("Credential=ASIA"));
  EXPECT_THAT(seen, ::testing::Not(HasSubstr("token=none")));
}

TEST_F(Identity, IsNamedWhereThereIsNone) {
  const Variables set(none_);
  const Variables home(Variables::Values{{"HOME", "/nonexistent"}});
  EXPECT_THROW(s3(), UnauthenticatedError);
  EXPECT_EQ(signature("s3", {.endpoint = services_, .anonymous = true}), "none token=none");
  const Variables google(Variables::Values{{"GCE_METADATA_HOST", "127.0.0.1:1"}});
  EXPECT_THROW(signature("gs", {.endpoint = services_}), UnauthenticatedError);
}

TEST_F(Identity, OfGoogleComesFromAKeyOrTheMachine) {
  const Variables home(Variables::Values{
      {"HOME", "/nonexistent"}, {"GCE_METADATA_HOST", services_.substr(services_.find("//") + 2)}});
  EXPECT_EQ(signature("gs", {.endpoint = services_}), "Bearer from-machine token=none");
  const std::string key = server("TANDEM_TEST_SERVICE_ACCOUNT");
  if (key.empty()) GTEST_SKIP() << "no openssl to make a key with";
  const Variables account(Variables::Values{{"GOOGLE_APPLICATION_CREDENTIALS", key}});
  EXPECT_EQ(signature("gs", {.endpoint = services_}), "Bearer from-key token=none");
  const Variables missing(Variables::Values{{"GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file"}});
  EXPECT_THROW(signature("gs", {.endpoint = services_}), NotFoundError);
}

}  // namespace
}  // namespace tandem::fs
