//! Names of people, in pinyin: they live in the provinces of [`super::places`].

/// Given names that women bear.
#[rustfmt::skip]
pub(crate) const FEMALE: &[&str] = &[
    "Ailing", "Chunmei", "Cuihua", "Dandan", "Fang", "Fenglan", "Guihua", "Guilan", "Guiying", "Haiyan",
    "Hongmei", "Huifang", "Huimin", "Jiaqi", "Jiaxin", "Jiayi", "Jing", "Jinfeng", "Juan", "Kexin", "Lan",
    "Lihua", "Lijuan", "Lili", "Lina", "Ling", "Liping", "Manli", "Mei", "Meili", "Meiling", "Mengting",
    "Mengyao", "Min", "Na", "Qian", "Qing", "Ruoxi", "Shihan", "Shufen", "Shuzhen", "Siyu", "Suzhen",
    "Tingting", "Wenjing", "Xia", "Xiaohong", "Xiaomei", "Xiaoyan", "Xinyi", "Xinyue", "Xiulan", "Xiuying",
    "Xue", "Xueying", "Yajing", "Yan", "Yanyan", "Yaqin", "Yihan", "Ying", "Yue", "Yuhua", "Yulan", "Yumei",
    "Yun", "Yutong", "Yuxin", "Yuzhen", "Zihan", "Ziqi", "Ziyan",
];

/// Given names that men bear; none is in [`FEMALE`], so that a name tells the gender.
#[rustfmt::skip]
pub(crate) const MALE: &[&str] = &[
    "Bin", "Bo", "Chao", "Chunsheng", "Daming", "Dawei", "Feng", "Gang", "Guangming", "Guodong", "Guohua",
    "Guoqiang", "Haibo", "Haitao", "Hao", "Haoran", "Haoyu", "Hongtao", "Hongwei", "Jianguo", "Jianhua",
    "Jianjun", "Jianping", "Jie", "Jinlong", "Jun", "Junhao", "Junjie", "Kai", "Kang", "Lei", "Liang", "Ming",
    "Minghui", "Mingzhe", "Peng", "Pengfei", "Qiang", "Qingsong", "Rongjun", "Shaohua", "Shijie", "Tao",
    "Tengfei", "Tianyi", "Tianyu", "Wei", "Weidong", "Wenbo", "Wenjie", "Xiangyu", "Xiaodong", "Xiaofeng",
    "Xinghua", "Xuefeng", "Yichen", "Yifan", "Yong", "Yongjun", "Yongqiang", "Yucheng", "Yuxuan", "Zehua",
    "Zhenhua", "Zhenyu", "Zhigang", "Zhiqiang", "Zhiwei", "Zhiyong", "Zhongwei", "Zihao", "Zimo",
];

/// Family names, and about how many of ten thousand people bear each: a name column is skewed as real ones
/// are.
#[rustfmt::skip]
pub(crate) const FAMILY: &[(&str, u16)] = &[
    ("Wang", 710), ("Li", 700), ("Zhang", 670), ("Liu", 510), ("Chen", 460), ("Yang", 310), ("Huang", 220),
    ("Zhao", 210), ("Wu", 200), ("Zhou", 190), ("Xu", 170), ("Sun", 140), ("Ma", 130), ("Zhu", 125),
    ("Hu", 120), ("Guo", 115), ("He", 110), ("Lin", 110), ("Gao", 100), ("Luo", 95), ("Zheng", 90),
    ("Liang", 85), ("Xie", 75), ("Song", 70), ("Tang", 70), ("Deng", 62), ("Han", 61), ("Feng", 60),
    ("Cao", 59), ("Peng", 58), ("Zeng", 57), ("Xiao", 56), ("Tian", 55), ("Dong", 54), ("Pan", 50),
    ("Yuan", 50), ("Cai", 48), ("Jiang", 47), ("Yu", 46), ("Du", 45), ("Ye", 44), ("Cheng", 43), ("Wei", 42),
    ("Su", 41), ("Lu", 40), ("Ding", 39), ("Ren", 38), ("Yao", 37), ("Shen", 36), ("Zhong", 35), ("Cui", 34),
    ("Tan", 33), ("Fan", 32), ("Liao", 31), ("Shi", 30), ("Jin", 29), ("Jia", 28), ("Xia", 27), ("Fu", 26),
    ("Fang", 25), ("Zou", 24), ("Xiong", 23), ("Bai", 22), ("Meng", 22), ("Qin", 21), ("Qiu", 21),
    ("Hou", 20), ("Yin", 20), ("Xue", 19), ("Yan", 19), ("Duan", 18), ("Lei", 18), ("Long", 17), ("Tao", 17),
    ("Mao", 16), ("Hao", 16), ("Gu", 15), ("Gong", 15), ("Shao", 14), ("Wan", 14), ("Qian", 13), ("Dai", 13),
    ("Mo", 12), ("Kong", 12), ("Xiang", 11), ("Chang", 11),
];

/// What a company deals in.
#[rustfmt::skip]
pub(crate) const TRADES: &[&str] = &[
    "Automotive", "Ceramics", "Chemicals", "Construction", "Electronics", "Energy", "Food", "Furniture",
    "Glass", "Instruments", "Logistics", "Machinery", "Medical", "Optics", "Packaging", "Paper", "Plastics",
    "Software", "Steel", "Tea", "Textiles", "Timber", "Tools", "Trading",
];

/// What a company calls itself in law.
#[rustfmt::skip]
pub(crate) const COMPANY_FORMS: &[&str] = &["Co. Ltd", "Group", "Industries", "Holdings"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_name_tells_the_gender_and_no_name_stands_twice() {
        let given: std::collections::HashSet<_> = FEMALE.iter().chain(MALE).collect();
        assert_eq!(given.len(), FEMALE.len() + MALE.len());
        let family: std::collections::HashSet<_> = FAMILY.iter().map(|entry| entry.0).collect();
        assert_eq!(family.len(), FAMILY.len());
    }
}
