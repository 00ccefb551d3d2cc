// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

DatasetInfo Images(std::vector<int64_t> shape = {1, 28, 28}) {
  DatasetInfo info;
  info.samples = 100;
  info.feature_shape = std::move(shape);
  info.classes = 10;
  return info;
}

ModelConfig Model(std::string name, std::map<std::string, std::vector<double>> parameters = {}) {
  ModelConfig model;
  model.name = std::move(name);
  model.parameters = std::move(parameters);
  return model;
}

int64_t Size(const Architecture& architecture) {
  const ParameterManifest manifest = MakeManifest(architecture);
  return manifest.back().offset + manifest.back().size;
}

std::string ErrorOf(const ModelConfig& model, const DatasetInfo& dataset,
                    Loss loss = Loss::kCrossEntropy) {
  const auto architecture = BuildArchitecture(model, dataset, loss);
  EXPECT_FALSE(architecture.ok());
  if (architecture.ok()) return "";
  EXPECT_EQ(architecture.status().code(), StatusCode::kInvalidArgument);
  return architecture.status().message();
}

TEST(Architecture, DefaultCnnOnMnistHasLeNetsSize) {
  const auto cnn = BuildArchitecture(Model("cnn"), Images(), Loss::kCrossEntropy);
  ASSERT_TRUE(cnn.ok());
  EXPECT_EQ(Size(*cnn), 80202);
}

TEST(Architecture, TensorsFollowEachOtherWithoutGaps) {
  for (const char* name : {"cnn", "mlp", "logistic"}) {
    const auto architecture = BuildArchitecture(Model(name), Images(), Loss::kCrossEntropy);
    ASSERT_TRUE(architecture.ok()) << name;
    int64_t offset = 0;
    for (const ParameterInfo& parameter : MakeManifest(*architecture)) {
      EXPECT_EQ(parameter.offset, offset) << parameter.name;
      int64_t size = 1;
      for (const int64_t dimension : parameter.shape) size *= dimension;
      EXPECT_EQ(parameter.size, size) << parameter.name;
      offset += parameter.size;
    }
  }
}

TEST(Architecture, NamesAndShapesAreThoseOfPyTorchModules) {
  const auto cnn = BuildArchitecture(Model("cnn", {{"channels", {4}}, {"hidden", {}}}),
                                     Images({3, 32, 32}), Loss::kCrossEntropy);
  ASSERT_TRUE(cnn.ok());
  const ParameterManifest manifest = MakeManifest(*cnn);
  ASSERT_EQ(manifest.size(), 4u);
  EXPECT_EQ(manifest[0].name, "conv1.weight");
  EXPECT_EQ(manifest[0].shape, (std::vector<int64_t>{4, 3, 5, 5}));
  EXPECT_EQ(manifest[1].name, "conv1.bias");
  EXPECT_EQ(manifest[2].name, "fc1.weight");
  EXPECT_EQ(manifest[2].shape, (std::vector<int64_t>{10, 4 * 14 * 14}));
  EXPECT_EQ(manifest[3].name, "fc1.bias");
}

TEST(Architecture, Cnn1dTakesSequencesWithAndWithoutChannels) {
  for (const auto& shape : {std::vector<int64_t>{64}, std::vector<int64_t>{1, 64}}) {
    const auto model = BuildArchitecture(Model("cnn1d"), Images(shape), Loss::kCrossEntropy);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->input_shape, (std::vector<int64_t>{1, 64}));
    EXPECT_EQ(Size(*model), (16 * 5 + 16) + (32 * 16 * 5 + 32) + (64 * 32 * 16 + 64) + 650);
  }
}

TEST(Architecture, DropoutActsAfterEachHiddenLayerOnly) {
  const auto mlp = BuildArchitecture(Model("mlp", {{"hidden", {8, 4}}, {"dropout", {0.5}}}),
                                     Images(), Loss::kCrossEntropy);
  ASSERT_TRUE(mlp.ok());
  std::vector<LayerKind> kinds;
  for (const Layer& layer : mlp->layers) kinds.push_back(layer.kind);
  using enum LayerKind;
  EXPECT_EQ(kinds,
            (std::vector<LayerKind>{kLinear, kRelu, kDropout, kLinear, kRelu, kDropout, kLinear}));
}

TEST(Architecture, TwoClassesWithBceHaveOneOutput) {
  DatasetInfo info = Images();
  info.classes = 2;
  const auto model = BuildArchitecture(Model("logistic"), info, Loss::kBceWithLogits);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->outputs, 1);
}

TEST(Architecture, ErrorsNameTheFieldAndTheNextStep) {
  EXPECT_THAT(ErrorOf(Model("cmn"), Images()), HasSubstr("did you mean cnn?"));
  EXPECT_THAT(ErrorOf(Model("cnn", {{"chanels", {1}}}), Images()),
              HasSubstr("did you mean channels?"));
  EXPECT_THAT(ErrorOf(Model("logistic", {{"hidden", {1}}}), Images()), HasSubstr("no parameters"));
  EXPECT_THAT(ErrorOf(Model("mlp", {{"hidden", {0}}}), Images()), HasSubstr("parameters.hidden"));
  EXPECT_THAT(ErrorOf(Model("mlp", {{"hidden", {1.5}}}), Images()), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf(Model("mlp", {{"dropout", {1}}}), Images()), HasSubstr("[0, 1)"));
  EXPECT_THAT(ErrorOf(Model("cnn", {{"kernel", {3, 3}}}), Images()), HasSubstr("one number"));
  EXPECT_THAT(ErrorOf(Model("cnn"), Images({1, 8, 8})), HasSubstr("too small"));
  EXPECT_THAT(ErrorOf(Model("cnn"), Images({64})), HasSubstr("spec.dataset.featureShape"));
  EXPECT_THAT(ErrorOf(Model("mlp"), Images(), Loss::kMse), HasSubstr("numbers as targets"));
  EXPECT_THAT(ErrorOf(Model("mlp"), Images(), Loss::kBceWithLogits), HasSubstr("2 classes"));
  DatasetInfo regression = Images();
  regression.classes = 0;
  EXPECT_THAT(ErrorOf(Model("mlp"), regression), HasSubstr("spec.dataset.classes"));
}

}  // namespace
}  // namespace lambdadnn
