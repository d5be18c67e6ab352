#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_session.h"

namespace tandem::io {

/// "node { … }" in text form. `attrs` are lines such as "T: { type: DT_FLOAT }", separated by ';'.
std::string node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs = {},
                 const std::vector<std::pair<std::string, std::string>>& attrs = {});

/// A placeholder of floats; `dims` such as "dim { size: 2 }".
std::string placeholder(const std::string& name, const std::string& dims = "");
/// A constant of int32 elements in a vector.
std::string ints(const std::string& name, const std::vector<int>& values);

/// Attribute values.
inline const std::string kFloatType = "type: DT_FLOAT";

ImportedGraph import_text(const std::string& text, bool allow_unsupported = false);

/// Expects that importing throws an Error of type E whose message matches.
template <class E>
void expect_refused(const std::string& text, const ::testing::Matcher<std::string>& message) {
  try {
    import_text(text);
    ADD_FAILURE() << "imported:\n" << text;
  } catch (const E& error) {
    EXPECT_THAT(std::string(error.what()), message);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
  }
}

}  // namespace tandem::io
