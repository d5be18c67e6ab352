#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tandem/io/example.h"

/// The messages of tf.train that records hold, as the C++ types that they are here:
///
///     td::train::Example example{
///         {{"label", td::train::Int64List{3}}, {"name", td::train::BytesList{"three"}}}};
///     writer.write(example.serialize());
namespace tandem::train {

using BytesList = std::vector<std::string>;
using FloatList = std::vector<float>;
using Int64List = std::vector<std::int64_t>;
using Feature = io::FeatureValues;  ///< one of the three lists
using Features = std::map<std::string, Feature>;
using FeatureList = std::vector<Feature>;
using FeatureLists = std::map<std::string, FeatureList>;
using Example = io::Example;
using SequenceExample = io::SequenceExample;

}  // namespace tandem::train
