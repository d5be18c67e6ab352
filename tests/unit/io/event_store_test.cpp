// Summaries in memory, and what TensorBoard's requests for them are answered. The real TensorBoard
// asks in tests/tensorboard/serve.py.

#include "tandem/io/event_store.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/io/summary.h"
#include <tandem/tandem.h>

namespace tandem::io {
namespace {

using testing::HasSubstr;
using testing::Not;

// A SeriesRequest for a plugin: plugin_filter, and how many points.
std::string request(const std::string& plugin, char points = 100) {
  const auto size = static_cast<char>(plugin.size());
  return std::string("\x12") + static_cast<char>(size + 2) + "\x0a" + size + plugin +
         "\x22\x02\x08" + points;
}

class EventStoreTest : public testing::Test {
 protected:
  EventStore store_;
  summary::SummaryWriter writer_ = store_.writer("train");
};

TEST_F(EventStoreTest, AnswersByPluginAndKind) {
  const auto on = writer_.as_default(1);
  summary::scalar("loss", 0.5);
  summary::histogram("weights", Tensor{1.0, 2.0});
  summary::text("note", Tensor("words"));
  writer_.flush();
  EXPECT_THAT(store_.answer("ListPlugins", "").at(0), HasSubstr("histograms"));
  EXPECT_THAT(store_.answer("ListScalars", request("scalars")).at(0), HasSubstr("loss"));
  EXPECT_THAT(store_.answer("ListTensors", request("histograms")).at(0), HasSubstr("weights"));
  EXPECT_THAT(store_.answer("ListTensors", request("histograms")).at(0), Not(HasSubstr("note")));
  EXPECT_EQ(store_.answer("ListScalars", request("images")).at(0), "");
  EXPECT_THAT(store_.answer("ReadTensors", request("text")).at(0), HasSubstr("words"));
}

TEST_F(EventStoreTest, ALongSeriesKeepsItsEnds) {
  const auto on = writer_.as_default();
  for (int i = 0; i < 50'000; ++i) summary::scalar("loss", i, {.step = i});
  writer_.flush();
  const std::string few = store_.answer("ReadScalars", request("scalars", 3)).at(0);
  EXPECT_LT(few.size(), 100u);
  const std::string last("\xcf\x86\x03", 3);  // 49,999 as a varint
  EXPECT_THAT(few, HasSubstr(last));
}

TEST_F(EventStoreTest, LargeBlobsComeInPieces) {
  const auto on = writer_.as_default(0);
  summary::write("big", Tensor(std::string(3'000'000, 'x')), {.plugin_name = "graph_keras_model"});
  writer_.flush();
  const auto pieces = store_.answer("ReadBlob", std::string("\x0a\x03") + "0.0");
  EXPECT_EQ(pieces.size(), 3u);
}

TEST_F(EventStoreTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(store_.answer("DropTables", ""), UnimplementedError);
  EXPECT_THROW(store_.answer("ReadScalars", "\xff\xff"), InvalidArgumentError);
  EXPECT_THROW(store_.answer("ReadBlob", std::string("\x0a\x01") + "?"), NotFoundError);
}

}  // namespace
}  // namespace tandem::io
