// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

DatasetInfo Samples(std::vector<int64_t> shape) {
  DatasetInfo info;
  info.samples = 100;
  info.feature_shape = std::move(shape);
  info.classes = 7;
  return info;
}

ModelConfig Named(std::string name, std::map<std::string, std::vector<double>> parameters = {}) {
  ModelConfig model;
  model.name = std::move(name);
  model.parameters = std::move(parameters);
  return model;
}

TEST(Network, SmallImagesKeepTheirPixels) {
  const SizedNetwork small =
      BuildNetwork(Named("resnet18"), Samples({3, 32, 48}), Loss::kCrossEntropy).value();
  EXPECT_EQ(small.first_stride, 1);
  EXPECT_FALSE(small.first_pool);
  EXPECT_EQ(small.sizes.at("firstKernel"), 3);
  EXPECT_EQ(small.sizes.at("classes"), 7);
  const SizedNetwork large =
      BuildNetwork(Named("resnet50"), Samples({3, 64, 64}), Loss::kCrossEntropy).value();
  EXPECT_EQ(large.first_stride, 2);
  EXPECT_TRUE(large.first_pool);
  EXPECT_EQ(large.sizes.at("firstKernel"), 7);
  const SizedNetwork wished = BuildNetwork(Named("resnet50", {{"smallImages", {1}}}),
                                           Samples({3, 64, 64}), Loss::kCrossEntropy)
                                  .value();
  EXPECT_EQ(wished.first_stride, 1);
  const SizedNetwork mobile =
      BuildNetwork(Named("mobilenet"), Samples({1, 224, 224}), Loss::kCrossEntropy).value();
  EXPECT_EQ(mobile.sizes.at("firstKernel"), 3) << "as torchvision's";
  EXPECT_EQ(mobile.first_stride, 2);
  EXPECT_EQ(mobile.dropout, 0.2);
}

TEST(Network, GroupNormIsAFileOfItsOwn) {
  const DatasetInfo images = Samples({3, 32, 32});
  EXPECT_EQ(BuildNetwork(Named("mobilenet"), images, Loss::kCrossEntropy)->file, "mobilenet");
  EXPECT_EQ(
      BuildNetwork(Named("mobilenet", {{"groupNorm", {1}}}), images, Loss::kCrossEntropy)->file,
      "mobilenet_group");
}

TEST(Network, ImagesMayLackTheirChannels) {
  const SizedNetwork network =
      BuildNetwork(Named("resnet18"), Samples({28, 28}), Loss::kCrossEntropy).value();
  EXPECT_EQ(network.input_shape, (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(network.sizes.at("channels"), 1);
}

TEST(Network, TextTakesItsSizes) {
  const SizedNetwork network =
      BuildNetwork(
          Named("textcnn", {{"vocabulary", {500}}, {"kernels", {2, 3, 8}}, {"width", {6}}}),
          Samples({8}), Loss::kCrossEntropy)
          .value();
  EXPECT_EQ(network.sizes.at("vocabulary"), 500);
  EXPECT_EQ(network.sizes.at("embedding"), 128);
  EXPECT_EQ(network.sizes.at("kernel3"), 8);
  EXPECT_EQ(network.sizes.at("3*width"), 18);
}

TEST(Network, TextHasTheVocabularyOfItsDataUnlessItIsLarger) {
  DatasetInfo texts = Samples({8});
  texts.vocabulary = 30;
  const auto size = [&](const ModelConfig& model) {
    return BuildNetwork(model, texts, Loss::kCrossEntropy).value().sizes.at("vocabulary");
  };
  EXPECT_EQ(size(Named("textcnn")), 30);
  EXPECT_EQ(size(Named("textcnn", {{"vocabulary", {40}}})), 40);
  EXPECT_THAT(BuildNetwork(Named("textcnn", {{"vocabulary", {29}}}), texts, Loss::kCrossEntropy)
                  .status()
                  .message(),
              testing::HasSubstr("vocabulary: 29 is less than the 30 tokens of "
                                 "spec.dataset.text.vocabulary; leave it out"));
}

TEST(Network, EachMistakeIsNamed) {
  struct Row {
    ModelConfig model;
    std::vector<int64_t> shape;
    const char* says;
  };
  const std::vector<Row> rows = {
      {Named("resnet18"), {784}, "spec.dataset.featureShape"},
      {Named("resnet18", {{"smallimages", {1}}}), {3, 32, 32}, "did you mean smallImages"},
      {Named("resnet18", {{"smallImages", {2}}}), {3, 32, 32}, "from 0 to 1"},
      {Named("resnet18", {{"dropout", {0.5}}}), {3, 32, 32}, "'dropout' is unknown"},
      {Named("mobilenet", {{"dropout", {1}}}),
       {3, 32, 32},
       "dropout: must be one number in [0, 1)"},
      {Named("textcnn"), {8}, "vocabulary: is needed"},
      {Named("textcnn", {{"vocabulary", {0}}}), {8}, "vocabulary: 0 must be a whole number from 1"},
      {Named("textcnn", {{"vocabulary", {9}}}), {2, 8}, "takes token ids"},
      {Named("textcnn", {{"vocabulary", {9}}, {"kernels", {3, 4}}}), {8}, "must be three numbers"},
      {Named("textcnn", {{"vocabulary", {9}}, {"kernels", {3, 4, 9}}}),
       {8},
       "9 is more than the 8"},
      {Named("resnet34"), {3, 32, 32}, "use one of cnn, cnn1d"},
  };
  for (const Row& row : rows) {
    const auto network = BuildNetwork(row.model, Samples(row.shape), Loss::kCrossEntropy);
    EXPECT_EQ(network.status().code(), StatusCode::kInvalidArgument) << row.says;
    EXPECT_THAT(network.status().message(), HasSubstr(row.says));
    EXPECT_THAT(network.status().message(), HasSubstr("spec.")) << row.says;
  }
}

}  // namespace
}  // namespace lambdadnn
