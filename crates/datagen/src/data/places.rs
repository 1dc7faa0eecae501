//! Provinces with their cities, and streets.

/// A province: its name, how many people live there, and cities of it.
pub(crate) struct Province {
    pub(crate) name: &'static str,
    /// In millions, by the census of 2020: how often the province is drawn.
    pub(crate) people: u16,
    /// For the four municipalities these are districts.
    pub(crate) cities: &'static [&'static str],
}

const fn province(name: &'static str, people: u16, cities: &'static [&'static str]) -> Province {
    Province { name, people, cities }
}

/// The provinces, municipalities and regions that the sales workload's customers live in.
#[rustfmt::skip]
pub(crate) const PROVINCES: &[Province] = &[
    province("Anhui", 61, &["Hefei", "Wuhu", "Bengbu", "Fuyang", "Anqing", "Ma'anshan", "Huainan",
        "Chuzhou"]),
    province("Beijing", 22, &["Chaoyang", "Haidian", "Fengtai", "Tongzhou", "Changping", "Daxing",
        "Xicheng"]),
    province("Chongqing", 32, &["Yuzhong", "Wanzhou", "Fuling", "Yubei", "Jiangjin", "Yongchuan", "Hechuan"]),
    province("Fujian", 42, &["Fuzhou", "Xiamen", "Quanzhou", "Zhangzhou", "Putian", "Longyan", "Ningde",
        "Sanming"]),
    province("Gansu", 25, &["Lanzhou", "Tianshui", "Jiuquan", "Jiayuguan", "Wuwei", "Zhangye", "Dunhuang"]),
    province("Guangdong", 126, &["Guangzhou", "Shenzhen", "Dongguan", "Foshan", "Zhuhai", "Zhongshan",
        "Huizhou", "Shantou", "Jiangmen", "Zhanjiang"]),
    province("Guangxi", 50, &["Nanning", "Liuzhou", "Guilin", "Wuzhou", "Beihai", "Yulin", "Qinzhou"]),
    province("Guizhou", 39, &["Guiyang", "Zunyi", "Anshun", "Bijie", "Liupanshui", "Tongren", "Kaili"]),
    province("Hainan", 10, &["Haikou", "Sanya", "Danzhou", "Wenchang", "Qionghai"]),
    province("Hebei", 75, &["Shijiazhuang", "Tangshan", "Baoding", "Handan", "Langfang", "Qinhuangdao",
        "Cangzhou", "Xingtai", "Zhangjiakou", "Chengde"]),
    province("Heilongjiang", 32, &["Harbin", "Qiqihar", "Daqing", "Mudanjiang", "Jiamusi", "Suihua", "Jixi"]),
    province("Henan", 99, &["Zhengzhou", "Luoyang", "Nanyang", "Kaifeng", "Xinxiang", "Anyang", "Xuchang",
        "Zhoukou", "Shangqiu", "Xinyang"]),
    province("Hubei", 58, &["Wuhan", "Yichang", "Xiangyang", "Jingzhou", "Shiyan", "Huangshi", "Xiaogan",
        "Huanggang"]),
    province("Hunan", 66, &["Changsha", "Zhuzhou", "Xiangtan", "Hengyang", "Yueyang", "Changde", "Chenzhou",
        "Shaoyang"]),
    province("Inner Mongolia", 24, &["Hohhot", "Baotou", "Chifeng", "Ordos", "Tongliao", "Hulunbuir",
        "Wuhai"]),
    province("Jiangsu", 85, &["Nanjing", "Suzhou", "Wuxi", "Xuzhou", "Changzhou", "Nantong", "Yangzhou",
        "Yancheng", "Lianyungang", "Zhenjiang"]),
    province("Jiangxi", 45, &["Nanchang", "Ganzhou", "Jiujiang", "Shangrao", "Yichun", "Ji'an",
        "Jingdezhen"]),
    province("Jilin", 24, &["Changchun", "Jilin", "Siping", "Tonghua", "Songyuan", "Baicheng"]),
    province("Liaoning", 43, &["Shenyang", "Dalian", "Anshan", "Fushun", "Jinzhou", "Yingkou", "Dandong",
        "Panjin"]),
    province("Ningxia", 7, &["Yinchuan", "Shizuishan", "Wuzhong", "Guyuan", "Zhongwei"]),
    province("Qinghai", 6, &["Xining", "Haidong", "Golmud", "Delingha"]),
    province("Shaanxi", 40, &["Xi'an", "Baoji", "Xianyang", "Weinan", "Hanzhong", "Yan'an", "Yulin",
        "Ankang"]),
    province("Shandong", 102, &["Jinan", "Qingdao", "Yantai", "Weifang", "Linyi", "Zibo", "Jining", "Weihai",
        "Rizhao", "Tai'an"]),
    province("Shanghai", 25, &["Pudong", "Minhang", "Baoshan", "Songjiang", "Jiading", "Xuhui", "Jing'an",
        "Yangpu"]),
    province("Shanxi", 35, &["Taiyuan", "Datong", "Linfen", "Yuncheng", "Changzhi", "Jinzhong", "Jincheng"]),
    province("Sichuan", 84, &["Chengdu", "Mianyang", "Nanchong", "Deyang", "Yibin", "Luzhou", "Leshan",
        "Zigong", "Dazhou", "Panzhihua"]),
    province("Tianjin", 14, &["Binhai", "Heping", "Nankai", "Hexi", "Wuqing", "Xiqing"]),
    province("Tibet", 4, &["Lhasa", "Shigatse", "Chamdo", "Nyingchi"]),
    province("Xinjiang", 26, &["Urumqi", "Karamay", "Kashgar", "Yining", "Korla", "Aksu", "Hami", "Turpan"]),
    province("Yunnan", 47, &["Kunming", "Qujing", "Yuxi", "Dali", "Lijiang", "Baoshan", "Zhaotong",
        "Jinghong"]),
    province("Zhejiang", 65, &["Hangzhou", "Ningbo", "Wenzhou", "Shaoxing", "Jiaxing", "Taizhou", "Jinhua",
        "Huzhou", "Quzhou", "Zhoushan"]),
];

/// Streets that many cities have.
#[rustfmt::skip]
pub(crate) const STREETS: &[&str] = &[
    "Beijing Road", "Binhe Road", "Chang'an Street", "Changjiang Road", "Dongfeng Road", "Fuxing Road",
    "Gongnong Road", "Guangming Street", "Heping Road", "Hongqi Street", "Huaihai Road", "Huanghe Road",
    "Jianguo Road", "Jianshe Road", "Jiefang Road", "Nanjing Road", "Renmin Road", "Shengli Street",
    "Shifu Street", "Tiyu Road", "Tuanjie Road", "Wenhua Road", "Wuyi Road", "Xinhua Street", "Xinmin Street",
    "Xueyuan Road", "Yan'an Road", "Yingbin Avenue", "Youyi Road", "Zhongshan Road",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_province_has_four_to_ten_cities_and_no_name_stands_twice() {
        let names: std::collections::HashSet<_> = PROVINCES.iter().map(|province| province.name).collect();
        assert_eq!(names.len(), 31);
        for province in PROVINCES {
            let cities: std::collections::HashSet<_> = province.cities.iter().collect();
            assert_eq!(cities.len(), province.cities.len(), "{}", province.name);
            assert!((4..=10).contains(&cities.len()), "{}", province.name);
        }
    }
}
