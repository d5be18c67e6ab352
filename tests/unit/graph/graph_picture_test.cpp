// Drawings of graphs.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/graph/graph_picture.h>

namespace {

using tandem::GraphPicture;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int edges(const std::string& svg) {
  int found = 0;
  for (std::size_t at = svg.find("<path"); at != std::string::npos; at = svg.find("<path", at + 1))
    ++found;
  return found;
}

TEST(GraphPicture, DrawsNodesAndEdges) {
  GraphPicture picture;
  EXPECT_EQ(picture.add({"a", "Placeholder", "first", "io", {}, {}}), 0);
  EXPECT_EQ(picture.add({"b", "Exp", "second", "", {0}, {}}), 1);
  EXPECT_EQ(picture.add({"c", "NoOp", "third", "", {}, {0, 1}}), 2);
  const std::string svg = picture.svg();
  EXPECT_EQ(edges(svg), 3);
  EXPECT_THAT(svg, AllOf(HasSubstr("class=\"node io\""), HasSubstr("<title>second</title>"),
                         HasSubstr("class=\"control\""), HasSubstr(">NoOp<")));
  // One layer each.
  EXPECT_THAT(svg, AllOf(HasSubstr("y=\"40\""), HasSubstr("y=\"124\""), HasSubstr("y=\"208\"")));
}

TEST(GraphPicture, LeavesOutEdgesOfLoops) {
  GraphPicture picture;
  picture.add({"merge", "Merge", "", "", {1}, {}});
  picture.add({"next", "NextIteration", "", "", {0}, {}});
  EXPECT_EQ(edges(picture.svg()), 1);
}

TEST(GraphPicture, EscapesAndShortensByLetters) {
  EXPECT_EQ(tandem::escape_html("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  GraphPicture picture;
  std::string umlauts;
  for (int i = 0; i < 40; ++i) umlauts += "ä";
  picture.add({umlauts, "<Op>", "", "", {}, {}});
  std::string kept = "…";
  for (int i = 0; i < 27; ++i) kept += "ä";
  EXPECT_THAT(picture.svg(), AllOf(HasSubstr(">" + kept + "<"), Not(HasSubstr("<Op>"))));
}

TEST(GraphPicture, LeavesOutOfANameWhatRepeatsTheOp) {
  GraphPicture picture;
  picture.add({"model/dense/MatMul", "MatMul", "", "", {}, {}});
  picture.add({"model/dense_1/MatMul_12", "MatMul", "", "", {}, {}});
  picture.add({"model/norm/mul_1", "Mul", "", "", {}, {}});
  picture.add({"Relu", "Relu", "", "", {}, {}});
  EXPECT_THAT(picture.svg(), AllOf(HasSubstr(">model/dense<"), HasSubstr(">model/dense_1<"),
                                   HasSubstr(">model/norm/mul_1<"), HasSubstr(">Relu<")));
}

TEST(GraphPicture, NothingIsAnEmptyPicture) {
  EXPECT_THAT(GraphPicture().svg(), HasSubstr("class=\"view\""));
}

}  // namespace
