#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/data.h"

namespace tandem::data {
namespace {

TEST(DatasetSize, IsANumberOrAnErrorThatNamesTheRemedy) {
  EXPECT_EQ(range(10).batch(4).size(), 3);
  EXPECT_EQ(size(range(10)), 10);
  EXPECT_THROW(range(10).repeat().size(), InvalidArgumentError);
  const Dataset filtered = range(10).filter([](const Element&) { return true; });
  try {
    filtered.size();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("assert_cardinality"), std::string::npos);
  }
  EXPECT_EQ(filtered.assert_cardinality(10).size(), 10);
}

TEST(Zip, TakesDatasetsOneByOne) {
  std::vector<std::string> elements;
  for (const Element& element : zip(range(2), range(5, 7), range(3))) {
    std::ostringstream text;
    text << element;
    elements.push_back(text.str());
  }
  EXPECT_EQ(elements, (std::vector<std::string>{"(0, 5, 0)", "(1, 6, 1)"}));
}

}  // namespace
}  // namespace tandem::data
