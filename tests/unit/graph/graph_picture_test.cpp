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

TEST(GraphPicture, HoldsNodesAndEdgesForThePage) {
  GraphPicture picture;
  EXPECT_EQ(picture.add({"scope/a", "Placeholder", "first", "io", {}, {}}), 0);
  EXPECT_EQ(picture.add({"scope/b", "Exp", "second\nline", "", {0}, {}, 0.5}), 1);
  EXPECT_EQ(picture.add({"c", "NoOp", "third", "", {}, {0, 1}}), 2);
  EXPECT_THAT(
      picture.svg(),
      AllOf(HasSubstr("\"names\":[\"scope/a\",\"scope/b\",\"c\"]"),
            HasSubstr("\"ops\":[\"Placeholder\",\"Exp\",\"NoOp\"]"),
            HasSubstr("\"details\":[\"first\",\"second\\nline\",\"third\"]"),
            HasSubstr("\"classes\":[\"io\",\"\",\"\"]"), HasSubstr("\"inputs\":[[],[0],[]]"),
            HasSubstr("\"controls\":[[],[],[0,1]]"), HasSubstr("\"seconds\":[0,0.5,0]")));
}

TEST(GraphPicture, LeavesOutEdgesOfLoops) {
  GraphPicture picture;
  picture.add({"merge", "Merge", "", "", {1}, {}});
  picture.add({"next", "NextIteration", "", "", {0}, {}});
  EXPECT_THAT(picture.svg(), HasSubstr("\"inputs\":[[],[0]]"));
}

TEST(GraphPicture, EscapesWhatCouldEndTheScript) {
  EXPECT_EQ(tandem::escape_html("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  GraphPicture picture;
  picture.add({"</script>\"\\\t", "<!--", "", "", {}, {}});
  EXPECT_THAT(picture.svg(), AllOf(HasSubstr("[\"\\u003c/script>\\\"\\\\\\u0009\"]"),
                                   HasSubstr("\"\\u003c!--\""), Not(HasSubstr("<!--"))));
}

TEST(GraphPicture, NothingIsAnEmptyPicture) {
  EXPECT_THAT(GraphPicture().svg(), HasSubstr("class=\"view\""));
}

}  // namespace
