// Files of a web server, which run.py starts: it answers by ranges, without, with other bytes than
// those asked for, and not at all.

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/io_scope.h"

#include "tests/stores/store_util.h"

namespace tandem::fs {
namespace {

using ::testing::HasSubstr;

class Web : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = server("TANDEM_TEST_HTTP");
    if (base_.empty()) GTEST_SKIP() << "run by tests/stores/run.py";
    StoreOptions options = quick_options("");
    options.attempts = 3;
    options.stall_timeout = std::chrono::milliseconds(1000);
    files_ = make_store("http", options);
  }
  std::string read(const std::string& name) {
    const auto file = files_->open(base_ + name);
    std::string bytes(file->known_size().value_or(0) + 10, '\0');
    bytes.resize(file->read(0, bytes));
    return bytes;
  }
  // "CODE: message"
  std::string error_of(const std::string& name) {
    try {
      read(name);
    } catch (const Error& error) {
      return cat(code_name(error.code()), ": ", error.what());
    }
    return "nothing was thrown";
  }

  std::string base_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(Web, FilesAreReadByRangesAndWhole) {
  const std::string large = some_bytes(12'345'678, 7);
  for (const std::string kind : {"/plain/", "/no_ranges/", "/redirect/"}) {
    EXPECT_EQ(crc32c(read(kind + "large")), crc32c(large)) << kind;
    EXPECT_EQ(read(kind + "small"), "a small file\n") << kind;
    EXPECT_EQ(read(kind + "empty"), "") << kind;
    EXPECT_EQ(files_->stat(base_ + kind + "large").size, large.size()) << kind;
    const auto file = files_->open(base_ + kind + "large");
    std::string part(1000, '\0');
    EXPECT_EQ(file->read(9'999'999, part), 1000u);
    EXPECT_EQ(part, large.substr(9'999'999, 1000)) << kind;
  }
  EXPECT_EQ(read_file(base_ + "/plain/small"), "a small file\n") << "by the registered scheme";
}

TEST_F(Web, NonsenseIsADataLossError) {
  EXPECT_THAT(error_of("/wrong_range/large"), HasSubstr("DATA_LOSS: " + base_ + "/wrong_range"));
  EXPECT_THAT(error_of("/nonsense/large"), HasSubstr("its range is 'pages 1 to 3'"));
  EXPECT_THAT(error_of("/longer/large"), HasSubstr("DATA_LOSS"));
  EXPECT_THAT(error_of("/changed/large"), HasSubstr("FAILED_PRECONDITION"));
}

TEST_F(Web, ErrorsSayWhatTheServerAnswered) {
  EXPECT_THAT(error_of("/plain/none"), HasSubstr("NOT_FOUND: " + base_ + "/plain/none; No such"));
  EXPECT_THAT(error_of("/status/403"), HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(error_of("/status/503"), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(error_of("/status/503"), HasSubstr("the last of 3 attempts"));
  EXPECT_EQ(read("/count/status/403"), "1") << "what will not change is not asked again";
  EXPECT_EQ(read("/count/status/503"), "6");
  EXPECT_THROW(files_->open("http://127.0.0.1:1/x"), UnavailableError);
  EXPECT_THROW(files_->create(base_ + "/x"), PermissionDeniedError);
  EXPECT_THROW(files_->list(base_), UnimplementedError);
}

TEST_F(Web, StalledTransfersEndAfterTheirTime) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of("/stall/x"), HasSubstr("DEADLINE_EXCEEDED"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

TEST_F(Web, CancellationEndsAWaitingRead) {
  StoreOptions patient = quick_options("");
  const auto files = make_store("http", patient);
  const auto stop = std::make_shared<Cancellation>();
  std::thread other([&] {
    while (read("/count/stall/cancelled") == "0") std::this_thread::yield();
    stop->cancel();
  });
  const IoScope scope(stop);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(files->open(base_ + "/stall/cancelled"), CancelledError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  other.join();
}

TEST_F(Web, CertificatesAreChecked) {
  const std::string secure = server("TANDEM_TEST_HTTPS");
  if (secure.empty()) GTEST_SKIP() << "no openssl to make a certificate with";
  EXPECT_THROW(files_->open(secure + "/plain/small"), UnauthenticatedError);
}

TEST_F(Web, ProxiesOfTheEnvironmentAreUsed) {
  const std::string host = "http://store.invalid/plain/small";
  EXPECT_THROW(files_->open(host), UnavailableError);
  ::setenv("http_proxy", base_.c_str(), 1);
  // The server takes the whole URL that a proxy gets as a path.
  EXPECT_THAT(error_of("/../").empty(), false);
  const auto file = files_->open(host);
  ::unsetenv("http_proxy");
  EXPECT_EQ(file->known_size(), 13u);
}

}  // namespace
}  // namespace tandem::fs
