#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {

/// What a run of td left behind.
struct TdResult {
  int code = -1;  // -1: it did not exit by itself
  std::string out;
  std::string err;

  /// The lines of `out` that hold `part`.
  std::vector<std::string> lines_with(const std::string& part) const;
};

/// Runs the td of this build as a shell would, in a folder of the test's own.
class TdTest : public ::testing::Test {
 protected:
  TdTest();
  ~TdTest() override;

  /// A file of the test's folder.
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// `td arguments`, after assignments to environment variables, both as a shell would read them.
  TdResult run(const std::string& arguments, const std::string& environment = "") const;
  /// Runs with a redirection of stdout; `out` stays empty.
  TdResult run_into(const std::string& out, const std::string& arguments) const;

  /// Expects each of these to be refused as wrong usage: exit code 2, stdout empty.
  void expect_wrong_usage(const std::vector<std::string>& arguments) const;
  /// Expects exit code 1 and an empty stdout; stderr.
  std::string failure_of(const std::string& arguments) const;

 private:
  std::string folder_;
};

}  // namespace tandem
